-- Lets a Run call the failing provider of the circuit $1, or gives it a later turn. Returns no row if the circuit is closed.
-- Turns are $2 ms apart, up to $4 ms after the next call; further Runs get a random time after that ($5: 0 to 1). One Run
-- calls at a time, unless its call takes longer than $3 ms. $6: whether the Run would call now. $7: whether it waits for the turn.
with circuit as materialized (
  select id, code, cause, asked_at,
         $6 and probe_at <= asked_at and probing_until <= asked_at as is_turn,
         greatest(probe_at, asked_at + $2 * interval '1 millisecond', last_turn + $2 * interval '1 millisecond') as next_turn,
         greatest(probe_at, asked_at) + $4 * interval '1 millisecond' as last_possible
  from (select *, clock_timestamp() as asked_at from provider_circuits where id = $1 for update) as locked
),
turn as materialized (
  select *, next_turn <= last_possible as has_turn,
         case when next_turn <= last_possible then next_turn
              else last_possible + $4 * $5 * interval '1 millisecond' end as starts_at
  from circuit
),
taken as (
  update provider_circuits as old
  set probe_at      = case when is_turn then asked_at + $2 * interval '1 millisecond' else probe_at end,
      probing_until = case when is_turn then asked_at + $3 * interval '1 millisecond' else probing_until end,
      last_turn     = case when $7 and has_turn and not is_turn then starts_at else last_turn end
  from turn
  where old.id = $1
)
select is_turn as "isTurn", code, cause, ceil(1000 * extract(epoch from starts_at - asked_at))::float8 as "waitMs"
from turn
