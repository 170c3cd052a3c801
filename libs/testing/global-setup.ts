export { startRunServices as default } from './run-services.ts';
