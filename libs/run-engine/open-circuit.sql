-- Stores a failed call of a provider, and opens its circuit $1 if it was closed. $2, $3: the failure. The next call is $4 ms after
-- a probe ($6) at the earliest, and $5 ms after any call, as the provider asked. Calls that began before the circuit opened delay no probe.
insert into provider_circuits as old (id, code, cause, probe_at, probing_until, last_turn)
values (
  $1, $2, $3::jsonb, clock_timestamp() + greatest($4::float8, $5::float8) * interval '1 millisecond',
  clock_timestamp(), clock_timestamp()
)
on conflict (id) do update
set code          = excluded.code,
    cause         = excluded.cause,
    probe_at      = greatest(
      old.probe_at,
      clock_timestamp() + greatest(case when $6 then $4::float8 else 0 end, $5::float8) * interval '1 millisecond'
    ),
    probing_until = case when $6 then clock_timestamp() else old.probing_until end
returning xmax = 0 as "wasClosed"
