/** Places of a deployment on one machine: each a network namespace of its own on one bridge, so that its link can be set down. Linux, as root. */
import { execFileSync } from 'node:child_process';

export interface Place {
  address: string;
  /** What a program is started with, to run there. */
  within: readonly string[];
  /** Nothing reaches it, and nothing of it reaches anybody: its link is down. */
  setLink(state: 'up' | 'down'): void;
  /** It and the other one do not reach each other, without a word; both reach everybody else. */
  cutFrom(other: Place): void;
  /** What the other one says does not reach it, which the other one does not know. */
  deafenTo(other: Place): void;
  /** Ends both. */
  joinTo(other: Place): void;
}

export interface Network {
  /** Where the bench itself is, as places see it. */
  address: string;
  place(name: string): Place;
  /** Removes everything; what runs there must have ended. Repeated calls do nothing. */
  close(): void;
}

/** Nobody has it, so that what is sent to it is lost. */
const NOWHERE = '02:00:00:00:00:01';

const ip = (...args: string[]): string => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString();

/** Why no namespaces can be made here; null when they can. */
export function networkProblem(): string | null {
  const name = `cb${process.pid}try`;
  try {
    ip('netns', 'add', name);
    ip('-n', name, 'link', 'set', 'lo', 'up');
    ip('netns', 'del', name);
    ip('link', 'add', `cb${process.pid}b`, 'type', 'bridge');
    ip('link', 'del', `cb${process.pid}b`);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message.trim() : String(error);
  }
}

/** Without namespaces: all places are this machine, and no link can be cut. */
export function flatNetwork(): Network {
  const refuse = (): never => {
    throw new Error('no link can be cut without namespaces');
  };
  const address = '127.0.0.1';
  const place: Place = { address, within: [], setLink: refuse, cutFrom: refuse, deafenTo: refuse, joinTo: refuse };
  return { address, place: () => place, close: () => undefined };
}

export function createNetwork(): Network {
  const bridge = `cb${process.pid}`;
  const subnet = freeSubnet();
  const address = `${subnet}.1`;
  const namespaces: string[] = [];
  let isOpen = true;

  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    process.off('exit', close);
    // A namespace stays while sockets of processes that ended wait for their peers, and its link with it.
    for (const [index, name] of namespaces.entries()) {
      quietly('link', 'del', `${bridge}p${index + 2}`);
      quietly('netns', 'del', name);
    }
    quietly('link', 'del', bridge);
  }

  process.once('exit', close);
  ip('link', 'add', bridge, 'type', 'bridge');
  ip('addr', 'add', `${address}/24`, 'dev', bridge);
  ip('link', 'set', bridge, 'up');

  return {
    address,
    place(name) {
      const number = namespaces.length + 2;
      const namespace = `${bridge}-${name}`;
      const host = `${bridge}p${number}`;
      namespaces.push(namespace);
      ip('netns', 'add', namespace);
      ip('link', 'add', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
      ip('link', 'set', host, 'master', bridge, 'up');
      ip('-n', namespace, 'addr', 'add', `${subnet}.${number}/24`, 'dev', 'eth0');
      ip('-n', namespace, 'link', 'set', 'eth0', 'up');
      ip('-n', namespace, 'link', 'set', 'lo', 'up');
      const lose = (from: string, to: string): string =>
        ip('-n', from, 'neigh', 'replace', to, 'lladdr', NOWHERE, 'nud', 'permanent', 'dev', 'eth0');
      const namespaceOf = (place: Place): string => place.within[3]!;
      const own: Place = {
        address: `${subnet}.${number}`,
        within: ['ip', 'netns', 'exec', namespace],
        setLink: (state) => void ip('link', 'set', host, state),
        cutFrom(other) {
          lose(namespace, other.address);
          lose(namespaceOf(other), own.address);
        },
        deafenTo: (other) => lose(namespaceOf(other), own.address),
        joinTo(other) {
          quietly('-n', namespace, 'neigh', 'del', other.address, 'dev', 'eth0');
          quietly('-n', namespaceOf(other), 'neigh', 'del', own.address, 'dev', 'eth0');
        },
      };
      return own;
    },
    close,
  };
}

function quietly(...args: string[]): void {
  try {
    ip(...args);
  } catch {
    // It is gone already.
  }
}

function freeSubnet(): string {
  const used = ip('-o', '-4', 'addr');
  for (let third = 1; third < 255; third += 1) if (!used.includes(` 10.213.${third}.`)) return `10.213.${third}`;
  throw new Error('no free subnet');
}
