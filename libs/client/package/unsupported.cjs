throw new Error(
  '@spool/client is an ES module: it needs Node 20.3 or later, or a bundler that reads "exports" of package.json.',
);
