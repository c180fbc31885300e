"""Twelve photographs that the package scikit-image carries: five in colour, seven grey, no labels."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from restudy.data.dataset import Dataset, File
from restudy.data.store import verified

DATASET = Dataset(
    name="photos",
    summary="12 photographs (5 colour, 7 grey, 300 x 384 to 512 x 741 pixels), no labels",
    files=(
        File("astronaut.png", "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5", 791_555),
        File("chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb", 240_512),
        File("coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7", 466_706),
        File("motorcycle_left.png", "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179", 644_701),
        File("rocket.jpg", "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c", 112_525),
        File("brick.png", "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf", 106_634),
        File("camera.png", "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a", 139_512),
        File("clock_motion.png", "f029226b28b642e80113d86622e9b215ee067a0966feaf5e60604a1e05733955", 58_784),
        File("coins.png", "f8d773fc9cfa6f4d8e5942dc34d0a0788fcaed2a4fefbbed0aef5398d7ef4cba", 75_825),
        File("grass.png", "b6b6022426b38936c43a4ac09635cd78af074e90f42ffa8227ac8b7452d39f89", 217_893),
        File("gravel.png", "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12", 194_247),
        File("moon.png", "78739619d11f7eb9c165bb5d2efd4772cee557812ec847532dbb1d92ef71f577", 50_177),
    ),
    sources=("installed:scikit-image==0.26.0", "pip:scikit-image==0.26.0"),
    licence="CC0 or public domain, except motorcycle_left and moon, whose terms the package does not state",
    citation="van der Walt et al. 2014: scikit-image, image processing in Python (PeerJ 2:e453); "
    "motorcycle: Scharstein et al. 2014, Middlebury stereo",
    homepage="https://scikit-image.org/docs/stable/api/skimage.data.html",
    comparable_note="not comparable with figures over ImageNet's validation set or any other labelled sample",
)

COLOUR = ("astronaut", "chelsea", "coffee", "motorcycle_left", "rocket")
GREY = ("brick", "camera", "clock_motion", "coins", "grass", "gravel", "moon")


def load(root: str | os.PathLike[str] | None = None) -> dict[str, npt.NDArray[np.uint8]]:
    """Return name -> photo as it lies in the file, read-only, values 0..255, `COLOUR` first, then `GREY`.

    Colour: uint8 (H, W, 3), red first; grey: uint8 (H, W). Sizes differ. The one JPEG, `rocket`, may come out
    a grey level apart in another version of the decoder. Raises DataError when a file is absent or altered.
    """
    from PIL import Image

    paths = {path.stem: path for path in verified(DATASET, root).values()}
    photos: dict[str, npt.NDArray[np.uint8]] = {}
    for name in COLOUR + GREY:
        with Image.open(paths[name]) as image:
            photos[name] = np.array(image, dtype=np.uint8)
        photos[name].flags.writeable = False
    return photos
