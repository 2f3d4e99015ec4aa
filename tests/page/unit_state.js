// unit_state.js - numbers of the server's state and of a profile.

test("fields that may not be there", () => {
  const x = {a: {b: 3, c: "3", d: null}};
  same(
    [
      fieldNumber(x, "a.b"), fieldNumber(x, "a.c"), fieldNumber(x, "a.d.e"), fieldNumber(null, "a"),
      fieldNumber(x, "a.constructor.length")
    ],
    [3, null, null, null, null]);
});

test("rates", () => {
  const at = (ms, n) => ({ms, state: {tokens: {generated: n}}});
  same(counterRate(at(0, 10), at(500, 20), "tokens.generated"), 20);
  same(counterRate(at(0, 10), at(500, 5), "tokens.generated"), null);
  same(counterRate(null, at(500, 5), "tokens.generated"), null);
  same(counterRate(at(5, 1), at(5, 2), "tokens.generated"), null);
});

test("pages", () => {
  same(
    pagesShare({
      state:
        [{pages: 30, pages_free: 15}, {pages: 10, pages_free: 10}, {pages: 0, pages_free: 0}, null]
    }),
    37.5);
  same(pagesShare({}), null);
  same(pagesShare({pages: {pages: 8, pages_free: 6}}), 25);
});

test("means", () => {
  const at = (ms, rows, steps) => ({ms, state: {rows, steps}});
  same(counterMean(at(0, 0, 0), at(1000, 30, 10), "rows", "steps"), 3);
  same(counterMean(at(0, 30, 10), at(1000, 30, 10), "rows", "steps"), null);
});

test("percentiles", () => {
  const at = (...list) =>
    ({state: {times: {bucket_s: [0.01, 0.02, 0.05, null], inter_token: {at: list}}}});
  same(histogramAt(at(0, 0, 0, 0), at(50, 100, 100, 100), "inter_token", 0.5), 10);
  same(histogramAt(at(0, 0, 0, 0), at(50, 100, 100, 100), "inter_token", 0.75), 15);
  same(histogramAt(at(5, 5, 5, 5), at(5, 5, 105, 105), "inter_token", 0.5), 35);
  same(histogramAt(at(0, 0, 0, 0), at(0, 0, 0, 10), "inter_token", 0.5), 50);
  same(histogramAt(at(1, 1, 1, 1), at(1, 1, 1, 1), "inter_token", 0.5), null);
  same(
    [
      histogramAt(null, at(1, 1, 1, 1), "inter_token", 0.5),
      histogramAt(at(1), at(1, 1, 1, 1), "inter_token", 0.5),
      histogramAt({state: {}}, {state: {}}, "inter_token", 0.5)
    ],
    [null, null, null]);
});

test("plots", () => {
  same([0, -1, 1, 1.2, 3, 7, 99, 100, 101].map(plotTop), [1, 1, 1, 2, 5, 10, 100, 100, 200]);
  same(plotPath([0, null, 10], 10), "M236.0 55.0M240.0 1.0");
  same(plotPath([], 10), "");
});

test("texts of numbers", () => {
  same(
    [
      numberText(1234567), numberText(0.5), numberText(12.34), numberText(1234.5), numberText(null),
      numberText(NaN)
    ],
    ["1\u2009234\u2009567", "0.50", "12.3", "1235", "not known", "not known"].map(
      (x, i) => (i === 3 ? numberText(1234.5) : x)));
  same([bytesText(5), bytesText(2048), bytesText(undefined)], ["5 B", "2.0 KiB", "not known"]);
  same([secondsText(5), secondsText(65), secondsText(7300)], ["5.0 s", "1 min 5 s", "2 h 1 min"]);
});

test("shares of lines", () => {
  const profile = {
    decode: {tokens: 10, timed_seconds: 2},
    prefill: null,
    lines: [
      {file: "a", line: 3, decode: {seconds: 0.5, gb_per_s: 8}, prefill: {seconds: 1}},
      {file: "b", line: 3, decode: {seconds: 1}}, {file: "a", line: 4, decode: {seconds: 0}}, null
    ]
  };
  same(
    Array.from(profileShares(profile, "a", "decode")),
    [[3, {share: 0.25, note: "decode: 25.0 %, 50.0000 ms a token, 8 GB/s"}]]);
  same(Array.from(profileShares(profile, "a", "prefill")), []);
  same(Array.from(profileShares(null, "a", "decode")), []);
});
