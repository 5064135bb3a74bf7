import { describe, expect, it } from "vitest";
import { Feed } from "./feed";

function made(...numbers: number[]): Feed<number> {
  const feed = new Feed<number>((row) => row);
  feed.begin({ items: numbers, before: 1 });
  return feed;
}

describe("Feed", () => {
  it("lets what is newer wait until it is shown", () => {
    const feed = made(5, 4);
    expect(feed.offer([7, 6, 5, 4], true)).toBe(2);
    expect(feed.rows.value).toEqual([5, 4]);
    expect(feed.waiting.value).toEqual([7, 6]);
    feed.offer([8, 7, 6], true);
    expect(feed.show()).toBe(true);
    expect(feed.rows.value).toEqual([8, 7, 6, 5, 4]);
    expect(feed.waiting.value).toEqual([]);
  });

  it("passes over what is not wanted, and does not meet it again", () => {
    const feed = made(2);
    expect(feed.offer([4, 3, 2], true, (row) => row % 2 === 0)).toBe(1);
    expect(feed.offer([4, 3, 2], true)).toBe(0);
    expect(feed.waiting.value).toEqual([4]);
  });

  it("wants to be read again after a gap", () => {
    const feed = made(2);
    feed.offer([9, 8], false);
    expect(feed.show()).toBe(false);
    feed.begin({ items: [9, 8, 7], before: 7 });
    expect(feed.show()).toBe(true);
    expect(feed.rows.value).toEqual([9, 8, 7]);
  });

  it("keeps a bounded number, and remembers where the rest goes on", () => {
    const feed = made(1);
    for (let at = 0; at < 5; at += 1) {
      feed.offer(Array.from({ length: 500 }, (_, index) => at * 500 + 501 - index), true);
      expect(feed.show()).toBe(true);
    }
    expect(feed.rows.value).toHaveLength(2000);
    expect(feed.before.value).toBe(feed.rows.value.at(-1));
  });

  it("adds older rows at the end, each once", () => {
    const feed = made(5, 4);
    feed.addOlder({ items: [4, 3], before: null, missed: true });
    expect(feed.rows.value).toEqual([5, 4, 3]);
    expect(feed.before.value).toBeNull();
    expect(feed.missed.value).toBe(true);
  });

  it("goes by the newest number of the whole, not of the page", () => {
    const feed = new Feed<number>((row) => row);
    feed.begin({ items: [3], before: null }, 10);
    expect(feed.offer([10, 9, 4], true)).toBe(0);
  });
});
