"""What people look at: the static site and the executed notebooks, from Parquet, YAML and figures alone.

`page.render` and `index.render` make the site, `notebook.execute` the notebooks, `bundle.bundle` a copy that stands
alone, `diff.compare` two runs side by side. Nothing here imports torch or mlflow, and this file imports nothing: the
fingerprint of a notebook must not follow an edit of the site.
"""
