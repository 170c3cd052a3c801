import { useState } from 'react';
import { Box, Button, Group, SegmentedControl, Text } from '@mantine/core';
import { useCopy } from '../components/copy.ts';
import { manifestDiff, manifestText, type DiffLine, type Manifest } from './manifest-text.ts';
import classes from './manifest-view.module.css';

const FORMATS = [
  { value: 'yaml', label: 'YAML' },
  { value: 'json', label: 'JSON' },
];

/** A manifest as people write it. Secrets are references. */
export function ManifestView({ manifest, of }: { manifest: Manifest; of: string }) {
  const [format, setFormat] = useState<'yaml' | 'json'>('yaml');
  const text = manifestText(manifest, format);
  const { copied, copy } = useCopy(text);
  return (
    <>
      <Group justify="space-between" mb="xs">
        <SegmentedControl
          size="xs"
          data={FORMATS}
          value={format}
          onChange={(value) => setFormat(value as 'yaml' | 'json')}
          aria-label={`Format of ${of}`}
        />
        <Button variant="default" onClick={copy} aria-label={`Copy ${of}`}>
          {copied ? 'Copied' : 'Copy'}
        </Button>
      </Group>
      <Box component="pre" className={classes.text} tabIndex={0} role="region" aria-label={of}>
        {text}
      </Box>
    </>
  );
}

const MARKS: Record<DiffLine['kind'], string> = { same: ' ', added: '+', removed: '-', gap: ' ' };

/** What changes from one manifest to the other, line by line. */
export function ManifestDiff({ before, after, of }: { before: Manifest; after: Manifest; of: string }) {
  const lines = manifestDiff(before, after);
  if (lines.length === 0) return <Text size="sm">No differences.</Text>;
  return (
    <Box component="pre" className={classes.text} tabIndex={0} role="region" aria-label={of}>
      {lines.map(({ kind, text }, i) => (
        <span key={i} className={classes[kind]} data-change={kind}>
          {`${MARKS[kind]} ${text}\n`}
        </span>
      ))}
    </Box>
  );
}
