import type { BuildOptions, BuildResult } from 'esbuild';

/** Bundles entry points of the SDK for browsers. */
export function bundleSdk(entries?: string[], options?: BuildOptions): Promise<BuildResult>;

/** Builds and packs the npm packages; paths of the tarballs. */
export function packPackages(folder?: string): Promise<string[]>;
