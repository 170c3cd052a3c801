import { useEffect, useRef } from 'react';
import { Anchor, AppShell, Burger, Button, Center, Group, Image, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Redirect, Route, Router, Switch, useLocation, useSearch } from 'wouter';
import type { Session } from './api/session.ts';
import { useSession } from './api/use-session.ts';
import { AccountMenu } from './frame/account-menu.tsx';
import { UnreachableBanner } from './frame/unreachable-banner.tsx';
import { ErrorBoundary } from './frame/error-boundary.tsx';
import classes from './frame/frame.module.css';
import icon from './icon.svg';
import { Login } from './frame/login.tsx';
import { Navigation } from './frame/navigation.tsx';
import { loadAll } from './lazy.tsx';
import { PAGES } from './pages.tsx';
import { ConfirmProvider } from './components/confirm.tsx';
import { PageTitle } from './components/page-title.tsx';
import { ErrorNote, Loading } from './components/query-state.tsx';

/** All pages in their frame; to whom is not signed in, the login page. */
export function App() {
  return (
    <Router base="/console">
      <Gate />
    </Router>
  );
}

function Gate() {
  const { data: session, error, isFetching, refetch } = useSession();
  const [location] = useLocation();
  const search = useSearch();
  const isLogin = location === '/login';
  if (session && isLogin) return <GoOn to={nextPage(search)} />;
  if (session) {
    return (
      // Within: what was asked ends with the session.
      <ConfirmProvider>
        <Frame session={session} />
      </ConfirmProvider>
    );
  }
  if (session === null) {
    const here = search === '' ? location : `${location}?${search}`;
    return isLogin ? <Login /> : <Redirect to={`/login?next=${encodeURIComponent(here)}`} replace />;
  }
  return (
    <Center component="main" mih="100dvh" p="md">
      {error ? <ErrorNote error={error} isBusy={isFetching} onTryAgain={() => void refetch()} /> : <Loading />}
    </Center>
  );
}

/** Where to after signing in; always a page of the console, as the router puts its own path before it. */
const nextPage = (search: string): string => {
  const next = new URLSearchParams(search).get('next') ?? '/';
  return next.startsWith('/') && !next.startsWith('/login') ? next : '/';
};

/** Bull Board is no page of this one: the browser itself goes there. */
function GoOn({ to }: { to: string }) {
  const leaves = /^\/queues\b/.test(to);
  useEffect(() => {
    if (leaves) window.location.replace(`/console${to}`);
  }, [leaves, to]);
  return leaves ? <Loading /> : <Redirect to={to} replace />;
}

/** The page that was opened comes first. */
const REST_AFTER_MS = 3_000;

function Frame({ session }: { session: Session }) {
  const [opened, { toggle, close }] = useDisclosure();
  const [location] = useLocation();
  useStartOfPage(location);
  useEffect(() => {
    const timer = setTimeout(() => void loadAll(), REST_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'sm', sm: 'md' }}
    >
      <Button component="a" href="#content" className={classes.skip} onClick={skipToContent}>
        Skip to content
      </Button>
      <AppShell.Header>
        <Head {...{ session, opened, toggle }} />
      </AppShell.Header>
      <AppShell.Navbar
        p="xs"
        id="pages"
        aria-label="Pages"
        className={classes.pages}
        data-closed={!opened || undefined}
      >
        <Navigation onFollow={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className={classes.main}>
        <UnreachableBanner />
        <ErrorBoundary key={location}>
          <Switch>
            {PAGES.map(({ path, component }) => (
              <Route key={path} path={path} component={component} />
            ))}
            <Route>
              <PageTitle title="Page not found" />
              <Anchor component={Link} href="/">
                Go to the overview
              </Anchor>
            </Route>
          </Switch>
        </ErrorBoundary>
      </AppShell.Main>
    </AppShell>
  );
}

function Head({ session, opened, toggle }: { session: Session; opened: boolean; toggle: () => void }) {
  return (
    <Group h="100%" px="md" justify="space-between" wrap="nowrap">
      <Group gap="xs" wrap="nowrap">
        <Burger
          {...{ opened }}
          onClick={toggle}
          hiddenFrom="sm"
          size="sm"
          aria-label="Navigation"
          aria-expanded={opened}
          aria-controls="pages"
        />
        <Link href="/" className={classes.brand}>
          <Image src={icon} alt="" w={22} h={22} />
          <Text span fw={700}>
            Spool
          </Text>
        </Link>
      </Group>
      <AccountMenu session={session} />
    </Group>
  );
}

/** Whoever follows a link begins at the top of its page, by keyboard too; going back, the browser knows where one was. */
function useStartOfPage(location: string): void {
  const shown = useRef({ location, path: window.location.pathname, isBack: false });
  useEffect(() => {
    const onBack = () => void (shown.current.isBack = shown.current.path !== window.location.pathname);
    window.addEventListener('popstate', onBack);
    return () => window.removeEventListener('popstate', onBack);
  }, []);
  useEffect(() => {
    const { location: before, isBack } = shown.current;
    shown.current = { location, path: window.location.pathname, isBack: false };
    if (before === location) return;
    document.getElementById('content')?.focus({ preventScroll: true });
    if (!isBack) window.scrollTo(0, 0);
  }, [location]);
}

/** Without a change of the address, which the router would take for one of a page. */
function skipToContent(event: { preventDefault: () => void }): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}
