import { useMemo } from "preact/hooks";
import { query, setQuery } from "./location";

export interface QueryParam {
  /** Reading it in a component or an effect subscribes to it. */
  readonly value: string;
  set(next: string, how?: "push" | "replace"): void;
}

/** A query parameter as state: the address is the only place where it is kept. */
export function queryParam(name: string, fallback = ""): QueryParam {
  return {
    get value() {
      return query.value.get(name) ?? fallback;
    },
    set(next, how = "push") {
      setQuery({ [name]: next === fallback ? null : next }, how);
    },
  };
}

export function useQueryParam(name: string, fallback = ""): QueryParam {
  return useMemo(() => queryParam(name, fallback), [name, fallback]);
}
