"""Style and template of the executed notebooks.

They stand in Python, not beside the site's templates: a notebook's fingerprint covers them as code, and an edit of
the site runs no notebook again.
"""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root{--bg:#fff;--fg:#1c2024;--muted:#5b6470;--line:#dfe3e8;--soft:#f5f6f8;--link:#0b5cad;
--kw:#8a1f7a;--str:#2b6a2b;--num:#8a4b00;--com:#5b6470;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--muted:#a0a8b2;--line:#343a41;--soft:#1d2125;
--link:#7db8f5;--kw:#e29ad6;--str:#9ccf9c;--num:#e5b377;--com:#a0a8b2}}
*{box-sizing:border-box}
html{background:var(--bg);color:var(--fg);font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
body{margin:0}
header,main{max-width:46rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.25rem;font-size:.9rem}
main{padding-bottom:4rem}
a{color:var(--link)}
a:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
h1{font-size:1.8rem;line-height:1.25;margin:1.2rem 0 .6rem}
h2{font-size:1.3rem;margin:2.2rem 0 .5rem}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p,li{overflow-wrap:anywhere}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:3px solid var(--line);color:var(--muted)}
details.code{margin:.5rem 0}
details.code>summary{cursor:pointer;color:var(--muted);font-size:.8rem;width:max-content}
.input_area,.highlight,.output_text pre{overflow-x:auto}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;overflow-x:auto;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
img,svg{max-width:100%;height:auto}
.output_png img,.output_svg img,.output_svg svg,.output_jpeg img{background:#fff;border-radius:6px;padding:.4rem}
.rendered_html{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;margin:1rem 0}
th,td{text-align:left;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.highlight .k,.highlight .kn,.highlight .kc,.highlight .ow,.highlight .o{color:var(--kw)}
.highlight .s,.highlight .s1,.highlight .s2,.highlight .sa,.highlight .sd{color:var(--str)}
.highlight .m,.highlight .mi,.highlight .mf{color:var(--num)}
.highlight .c,.highlight .c1{color:var(--com);font-style:italic}
@media print{details.code{display:none}header{display:none}html{font-size:11pt}}
"""

TEMPLATE: Final = """
{%- extends 'basic/index.html.j2' -%}
{%- block header -%}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ resources['metadata']['name'] | e }}</title>
<style>{{ resources['css'] }}</style>
</head>
<body>
<header><a href="{{ resources['back'] | e }}">Back to the paper's page</a></header>
<main>
{%- endblock header -%}
{%- block input_group -%}
<details class="code"><summary>Code</summary>
{{ super() }}
</details>
{%- endblock input_group -%}
{%- block footer -%}
</main>
</body>
</html>
{%- endblock footer -%}
"""
