/** Tool servers cannot be kept from the worker's secrets here, so none is started. `message` says what to do. */
export class SandboxMissing extends Error {
  override name = 'SandboxMissing';
}
