"""Studies, presets, parameters and shards: what study.yaml means."""

from restudy.catalog.plan import Plan, Shard, plan
from restudy.catalog.study import Study, discover, slugs, study

__all__ = ["Plan", "Shard", "Study", "discover", "plan", "slugs", "study"]
