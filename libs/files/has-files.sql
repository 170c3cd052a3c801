select exists (select from files) as found
