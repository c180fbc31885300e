"""Do the heatmaps of a model of your own pass the tests? Randomised weights, perturbed regions, complexity.

`restudy check` runs this from the command line (docs/check.md); from Python:

    from restudy.checkup import Options, check_model, load_images

    check_model(model, load_images("photos", channels=3, size=224), Path("check"), Options())
"""

from restudy.checkup.images import Images, load_images
from restudy.checkup.run import Options, check_model

__all__ = ["Images", "Options", "check_model", "load_images"]
