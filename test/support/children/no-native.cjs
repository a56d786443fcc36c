// Makes the native signature library fail to load, as it does on a platform without a build of it.
const Module = require('node:module');

const load = Module._load;
Module._load = function (request, ...rest) {
  if (request === 'secp256k1/bindings') throw new Error('not built for this platform');
  return load.call(this, request, ...rest);
};
