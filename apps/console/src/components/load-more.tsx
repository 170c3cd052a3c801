import { Button, Center, Text } from '@mantine/core';
import type { Pages } from '../api/use-pages.ts';

/** Below a list of pages: the button for the next, or nothing at the end. */
export function LoadMore({
  pages,
}: {
  pages: Pick<Pages<unknown>, 'hasMore' | 'isLoadingMore' | 'loadMore' | 'items'>;
}) {
  if (!pages.hasMore) return null;
  return (
    <Center py="sm">
      <Button variant="default" loading={pages.isLoadingMore} onClick={pages.loadMore}>
        Load more
      </Button>
      <Text size="xs" c="dimmed" ml="sm">
        {pages.items.length} shown
      </Text>
    </Center>
  );
}
