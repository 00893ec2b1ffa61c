"""The look of the report, after the common rules: a column of contents, figures that follow light and dark."""

CSS = """
.report .lede, .report .mark { max-width: 56rem; }
body.report { scroll-padding-top: 1rem; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--panel); padding: 0.5rem 1rem; z-index: 9; }
.report .frame { max-width: 84rem; margin: 0 auto; display: grid; grid-template-columns: minmax(0, 1fr); }
.report header, .report main, .report footer { margin: 0; max-width: none; min-width: 0; }
.report header { max-width: 84rem; margin: 0 auto; }
.report nav { padding: 0 1.25rem; margin-top: 1.5rem; font-size: 0.9rem; }
.report nav h2 { font-size: 0.8rem; letter-spacing: 0.06em; text-transform: uppercase; color: var(--soft);
  margin: 0.9rem 0 0.35rem; }
.report nav ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.4rem; }
.report nav li { max-width: none; }
.report nav a { display: block; padding: 0.3rem 0.7rem; border: 1px solid var(--line); border-radius: 99px;
  color: var(--ink); text-decoration: none; background: var(--panel); }
.report nav a:hover, .report nav a:focus-visible { border-color: var(--good); color: var(--good); }
.report nav .long { display: none; }
.report nav .missing a { color: var(--soft); border-style: dashed; }
.report a { color: var(--good); }
.report section { scroll-margin-top: 1rem; }
.report main section > h2 { margin-top: 3.25rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
.report main section > h2 .place { display: block; font-size: 0.85rem; letter-spacing: 0.06em;
  text-transform: uppercase; color: var(--soft); font-weight: 600; }
.report .part { font-size: 1.9rem; font-weight: 700; margin: 4rem 0 0; letter-spacing: -0.015em; }
.report dl { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: 0.55rem 1.25rem; margin: 1rem 0;
  max-width: 56rem; }
.report dt { color: var(--soft); font-weight: 600; }
.report dd { margin: 0; }
.report .exact { border-left: 3px solid var(--good); padding-left: 0.8rem; }
.report .exact.failing { border-left-color: var(--bad); }
.report .shows { font-size: 1.0625rem; max-width: 56rem; }
.report .card { background: var(--c-ffffff); }
.report .card svg { display: block; width: 100%; max-width: 58rem; min-width: 40rem; height: auto; margin: 0 auto; }
.report .maps { grid-template-columns: repeat(auto-fill, minmax(min(100%, 12.5rem), 1fr)); margin-bottom: 1.5rem; }
.report .summary { border: 1px solid var(--line); border-radius: 12px; background: var(--panel);
  padding: 0.4rem 1.4rem 1.2rem; margin-top: 2rem; }
.report .summary h2 { margin-top: 1rem; }
.report .summary li { max-width: 58rem; margin: 0.5rem 0; }
.report .summary .scroll { background: var(--back); }
.report .open { color: var(--soft); background: var(--line); }
.report .absent { border: 1px dashed var(--soft); border-radius: 10px; padding: 0.9rem 1.1rem; max-width: 56rem; }
.report .files { color: var(--soft); font-size: 0.88rem; }
.report th, .report td { padding: 0.5rem 0.35rem; }
.report th:first-child, .report td:first-child { padding-left: 0.8rem; }
.report th:last-child, .report td:last-child { padding-right: 0.8rem; }
.report main table { font-size: 0.83rem; }
.report main tbody th { white-space: normal; min-width: 8rem; }
.report td.wide { white-space: normal; min-width: 9rem; }
.report .over { margin: 1.4rem 0 -0.4rem; }
.report .explorer { margin-top: 1rem; }
@media (min-width: 64rem) {
  .report .frame { grid-template-columns: 15.5rem minmax(0, 1fr); }
  .report nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto;
    padding: 1rem 0 2rem 1.25rem; }
  .report nav ul { display: block; }
  .report nav a { border: 0; background: none; border-radius: 6px; padding: 0.22rem 0.6rem; }
  .report nav a:hover, .report nav a:focus-visible { background: var(--panel); }
  .report nav .long { display: inline; }
  .report nav .short { color: var(--soft); }
}
@media (max-width: 34rem) {
  .report dl { grid-template-columns: minmax(0, 1fr); gap: 0.1rem; }
  .report dd { margin-bottom: 0.7rem; }
  .report .maps { grid-template-columns: 1fr 1fr; }
  .report .summary { padding: 0.2rem 1rem 1rem; }
  .report .summary ul { padding-left: 1.1rem; }
}
@media print { .report nav { display: none; } }
"""
