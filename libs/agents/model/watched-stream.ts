/** Nothing came for as long as the manifest allows. */
export class ProviderSilent extends Error {
  override name = 'ProviderSilent';

  constructor(silenceMs: number) {
    super(`The provider said nothing for ${silenceMs} ms.`);
  }
}

/** The stream ended before the answer did. */
export class StreamCut extends Error {
  override name = 'StreamCut';
}
