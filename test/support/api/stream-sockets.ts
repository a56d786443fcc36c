/** Sockets of the stream client whose server is the test: it opens, answers, refuses and loses them. */

interface Sent {
  method: string;
  subscription: { type: string };
}

export interface StreamSocket {
  onopen: (() => void) | null;
  onmessage: ((message: { data: string }) => void) | null;
  /** What the client sent, in its order. */
  readonly sent: readonly Sent[];
  /** Of that, what was neither acknowledged nor refused. */
  readonly unanswered: readonly Sent[];
  /** Says a frame. */
  say(frame: unknown): void;
  /** Says that a subscription is taken, whatever was sent. */
  take(subscription: object): void;
  /** Takes the next message that was not answered. */
  acknowledge(): void;
  /** Refuses it; null for an error that does not name it. */
  refuse(what: string | null): void;
  close(): void;
}

/** A class for the client's option `WebSocket`, and its sockets in the order in which they were opened. A closed one can't be sent to. */
export function streamSockets(): { opened: StreamSocket[]; WebSocket: typeof globalThis.WebSocket } {
  const opened: StreamSocket[] = [];
  class Socket implements StreamSocket {
    onopen: (() => void) | null = null;
    onmessage: ((message: { data: string }) => void) | null = null;
    onclose: (() => void) | null = null;
    readonly sent: Sent[] = [];
    readonly unanswered: Sent[] = [];
    private isClosed = false;
    constructor() {
      opened.push(this);
    }
    send(text: string): void {
      if (this.isClosed) throw new Error('sent over a closed socket');
      const sent = JSON.parse(text) as Sent;
      this.sent.push(sent);
      this.unanswered.push(sent);
    }
    close(): void {
      this.isClosed = true;
      this.onclose?.();
    }
    say(frame: unknown): void {
      this.onmessage?.({ data: JSON.stringify(frame) });
    }
    take(subscription: object): void {
      this.say({ channel: 'subscriptionResponse', data: { method: 'subscribe', subscription } });
    }
    acknowledge(): void {
      this.say({ channel: 'subscriptionResponse', data: this.unanswered.shift() });
    }
    refuse(what: string | null): void {
      const next = this.unanswered.shift();
      const named = `${what} ${JSON.stringify(next?.subscription)}`;
      this.say({ channel: 'error', data: what === null ? 'rate_limited: Too many' : named });
    }
  }
  return { opened, WebSocket: Socket as unknown as typeof globalThis.WebSocket };
}
