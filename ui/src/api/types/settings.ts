/** The session, tokens, options and the store, as the API sends them. */

/** `worker` is for programs: nobody is signed in with it. */
export type CallerRole = "viewer" | "submitter" | "operator" | "worker" | "admin";

export type Right = "view" | "submit" | "operate" | "work" | "administer";

export interface Me {
  name: string;
  role: CallerRole;
  rights: Right[];
  via: "loopback" | "token" | "session" | "proxy" | "command line";
}

export interface SessionView {
  /** Null for somebody who is not signed in, who is told nothing else. */
  caller: Me | null;
  /** The one that is shown when the address names none. */
  namespace: string | null;
  namespaces: string[];
  version: string | null;
  /** Some of what tasks hold is hidden from this caller. */
  masked: boolean;
}

export interface TokenInfo {
  id: string;
  name: string;
  role: CallerRole;
  /** `*` is all of them. */
  namespaces: string[];
  made_by: string;
  made_at: string;
  expires_at: string | null;
  used_at: string | null;
}

export interface MakeToken {
  name: string;
  role: CallerRole;
  namespaces: string[];
  /** Seconds from now; null is for good. */
  expires: number | null;
}

export interface NewToken {
  /** Shown this once. */
  token: string;
  info: TokenInfo;
}

export interface OptionRow {
  name: string;
  /** As it would be written in Python; secrets are masked. */
  value: string;
  origin: string;
}

export interface FindingRow {
  level: "ok" | "warning" | "problem";
  text: string;
  advice: string;
}
