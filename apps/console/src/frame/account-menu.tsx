import { Button, Menu, Text, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
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
    <PersonMenu
      name={name}
      label={`Signed in as ${name}. Session ends by ${formatTime(session.expiresAt)}`}
      leave="Sign out"
      onLeave={() => void signOut().catch(reportFailure)}
    />
  );
}

/** Shows whose link is used, chooses the theme, and leaves the link. */
export function LinkMenu({ userId, onLeave }: { userId: string; onLeave: () => void }) {
  return (
    <PersonMenu name={userId} label={`Chatting as ${userId}, by a link`} leave="Leave this link" onLeave={onLeave} />
  );
}

interface PersonMenuProps {
  name: string;
  label: string;
  /** The name of the action that ends the access. */
  leave: string;
  onLeave: () => void;
}

function PersonMenu({ name, label, leave, onLeave }: PersonMenuProps) {
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
        <Menu.Label style={{ overflowWrap: 'anywhere' }}>{label}</Menu.Label>
        <Menu.Divider />
        <ThemeChoice />
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={14} />} onClick={onLeave}>
          {leave}
        </Menu.Item>
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
