import { ActionIcon, Button, Menu, Text, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { IconDeviceDesktop, IconLogout, IconMoon, IconSun, IconUser } from '@tabler/icons-react';
import type { Session } from '../api/session.ts';
import { useSigning } from '../api/use-session.ts';
import { reportFailure } from '../components/action.ts';
import { formatTime } from '../components/format.ts';

const SCHEMES = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'System', icon: IconDeviceDesktop },
] as const;

/** Shows who is signed in, chooses the theme, and signs out. */
export function AccountMenu({ session }: { session: Session }) {
  const { signOut } = useSigning();
  const { name } = session.operator;
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconUser size={14} />} aria-label={`Account: ${name}`} maw={180}>
          <Text span size="xs" truncate>
            {name}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Signed in as {name}. Session ends by {formatTime(session.expiresAt)}
        </Menu.Label>
        <Menu.Divider />
        <ThemeChoice />
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={14} />} onClick={() => void signOut().catch(reportFailure)}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The menu for people without a session. */
export function ThemeMenu() {
  return (
    <Menu position="bottom-end" width={160}>
      <Menu.Target>
        <ActionIcon aria-label="Theme" title="Theme">
          <IconSun size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <ThemeChoice />
      </Menu.Dropdown>
    </Menu>
  );
}

function ThemeChoice() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <>
      <Menu.Label id="colour-scheme">Theme</Menu.Label>
      <Menu.RadioGroup
        value={colorScheme}
        onChange={(value) => setColorScheme(value as MantineColorScheme)}
        aria-labelledby="colour-scheme"
      >
        {SCHEMES.map(({ value, label, icon: Icon }) => (
          <Menu.RadioItem key={value} value={value} rightSection={<Icon size={14} />}>
            {label}
          </Menu.RadioItem>
        ))}
      </Menu.RadioGroup>
    </>
  );
}
