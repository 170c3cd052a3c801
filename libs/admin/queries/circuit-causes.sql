-- The different causes of failing model providers.
select distinct cause_group(cause) as cause from provider_circuits where cause is not null
