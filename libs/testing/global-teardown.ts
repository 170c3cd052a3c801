export { stopRunServices as default } from './run-services.ts';
