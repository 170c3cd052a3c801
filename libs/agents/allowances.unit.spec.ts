import { loadConfig } from '#platform';
import { allowancesOf } from './allowances.ts';

it('counts files that client libraries read among those of the service', () => {
  const env = {
    HOME: '/home/spool',
    OTEL_EXPORTER_OTLP_CLIENT_KEY: '/keys/otlp.pem',
    OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: '/keys/traces.pem',
    PGPASSFILE: '/keys/pgpass',
  };
  const { ownFiles } = allowancesOf(loadConfig({}), env);
  expect(ownFiles).toEqual(
    expect.arrayContaining([
      ...['/keys/otlp.pem', '/keys/traces.pem', '/keys/pgpass'],
      ...['/home/spool/.pgpass', '/home/spool/.aws/credentials', '/home/spool/.aws/config'],
    ]),
  );
});
