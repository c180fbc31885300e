"""Photographs of animals cut out of their background: stamps of the drawing program Tux Paint."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from restudy.data.dataset import Dataset, File
from restudy.data.store import verified

_LISTED = """
amphibians/frog-1.png 7fbb4b433aed67f636ef22560a1462d55dfae2567c248bd14e865b54dcce7a6e 54411
amphibians/frog.png 3136e0e0fc9bf3148e066ed925c847a2048436d4cc77e56e7205a874210e95df 47401
birds/albino_peahen.png dcf13a4f2e3b9acc2e9d6b0003c2f1249d2565a8e85351e80fb4d9f77c307323 140314
birds/blackbird.png 84734f2c1bc3f6f747a44e076919eb542115ebc9f53ec9720cdef17ae09efe6c 19397
birds/chicken_profile.png 963033ffca10bb988e23698f57685f1b34e612a2091b5c650ab1d94341374972 29781
birds/crow.png b717979bede3b46034b3e4d879afa51a1f64b63e16322fea4e2d220bd9139e0c 22337
birds/cuckoo.png 108973fcbcf130e7741fdd0767d204ea91880158cc7ecdfa08f22805140be074 21969
birds/drake.png 4a8cfa05f6928b500d68354a5f8dceb8804b776fc5bdb098dd2fb4948dd7ce93 21130
birds/duck.png 7770d71308241fe7f0a4f99fc2aabe8ac16e4cfff6e37d13e61fab459c8aed33 31074
birds/gander.png 8401b1e2443527c4b187fd901e4b3ee62795f3e1fb8640cd571d8cec02b188cf 19326
birds/guineafowl.png 8d09c0d7824ea02f64b7a3992499c0b213971d479bb1cd97a171344f4a869c76 21146
birds/helmeted_guineafowl.png a99a5c8762be390c4813583c159430f401159fa82185c75fd08a62caf1c0458d 153862
birds/hen.png c0bf14dd4ee7dfdab6408991e1fa02c3097472f6ddcd46849111db623827881c 23145
birds/heron_greatblue.png 4ce6e79b1bb78efac6846705f20e3efb6ac6f8a1d1f71f39d54a3e595ccb13b5 37775
birds/lark.png 819d7bbadd3d64b564d669c759f47dd797a4d7a59d1a4f71c00a7ec85b755d5f 34216
birds/little-penguin.png 8e2f462390dc0503acab5a3968b08c05ccf704e2f72a742d31eb85e8f7f1f995 17533
birds/magellanic_penguin.png ed4a1246d2282478d81bfa6a8bc7644b3660de6dd8ee7afce1b94c06fcf0dcf5 36352
birds/magpie.png 0940db581fff1eff00aa3a83d8520a7794a3233b4f5d81e71b42e9ce04b2c8ff 9453
birds/nandou.png 00e5735dec58b5ddeaf5795d1a71efcb33f27037466ce0158d47942089ab0ab4 30955
birds/ostrich.png 3c3ae1f1b5a29c91f28d810734a24c2f342a25c20615a46f78b281c723df757f 37693
birds/owl.png 5fd2280da7f3ae317cc9ac7f568f406d581cf858f5295e3581a8845be250a383 35792
birds/pelican.png 13f209688b1abd8e91358da28adc62f693604c80760c2763a6baec874e5eb2ac 61883
birds/penguin.png 5d0106c55f54cd7f7ceb5b997725b49ac9f3c3fd6934cf009a73cc6fa172f00b 19106
birds/pigeon.png acf99a925c3b64ef5403611cedcf411436c6785084fa5b875af7407fd89b858f 23533
birds/rainbow-lorikeet.png a0134b0a9bb2aa00988b596968e0dddd11559bc57b2a0474b5c883b846ccc74f 11016
birds/rooster.png f8e0caa20436484d76512417cb6c1b1a8d3f631da26350de4f3666526790fbe6 28025
birds/seagull.png 09019f68ea1aa7f8550c719a52d24c315787873898ee735f2bbb37fd876ba65f 19444
birds/tucan.png 4db72d83ee7b01ce8d72ffd582c96be468261d9b2eed1173eca0647ed1d196b9 28590
birds/turkey.png b6e74356f85a205a2f16ab43a2994696faf983d0c7124a892096377042546dbe 60865
birds/vulture.png 5a829eccfac975dc071327b399732ed1fdf2b4adec035098047670ccf533f27b 42435
fish/bluegroper.png 6b587875e0fd860096889ab8576023ba5f60690e1db27dda225b78d633105f08 26821
fish/butterflyfish.png 52d47a016d2c6765a0f2ce14bbfe735e1d3ea7bbed67bd8e9e45158388779d46 21325
fish/clownfish.png 5bbb65660e9f10fca48c3fedb48dbfa99c75b7cb636ccd004fb2ce4d9da2542a 11437
fish/coraltrout.png 2e61e728ecb7ccc3937f162bb0c4879286ff2204b345c44a5e9cc0ea84960107 34223
fish/dolphinfish.png 0682e0a77562fa4b4736d92e0c0b2d4be64baf1abe82bdb40a6cc7a589354a9b 14619
fish/seahorse.png 0871e1071949f18a6390205ee10eeba3ef84685ff7c968fa6e3b42c4575f3a38 39641
fish/shrimp.png b7f58c6fb9ba2bab4908845c6ad9ed09139263b5afe170bb1d04688ddc0f4a4d 9809
fish/stripedfish.png 9d0424a7178d3ed04301dc500e028860a9769cff0c7a02dd44c77cf252cd97f9 14993
insects/Woodlouse.png fcb1e419dd9afc40650c60e0eb9922282cee439a37b0f4b29bd5f352d280b88f 94796
insects/grasshopper.png 1ecd462ad14f32a5de859613d6a9d9c706261eb6fd1fe80af0ce2a77ec1a8558 27095
insects/hornet.png 70e73aca511e5f466d59d98d640df9f446136cda39f0db2f85ce06265332aafd 28455
insects/hoverfly.png 0e91c5ec67cdb900ef36142a0571c698aa555db127457dc6724f4d21b53c4a82 49091
insects/xanthia.png b60f2d0ec2d66d676dc523c526634c6acd02f627b95d0490c2563e6bea95ba4d 32681
lizards/iguana.png 7cbe370ea1839051f84601ada1d3d17e3975427d754966a19b57e32507d9815f 17306
mammals/apes/chimp.png 1103c68ddc42cd3b36c7c96020e844a7c1d4fc7dba8132b408263c3038b8f72f 49231
mammals/apes/gorilla.png a9b45cb2f0acae32161d3ab45505219c6083a18e9412e5439cdd104fcbb53a85 36233
mammals/apes/tamarin_emperor.png 343306d0dcdb3db1aac59692e3a4c30960bc3d5c9a599c4b1356e84d612c4013 40852
mammals/aquatic/dolphin.png 14de4f99361cf957db01085d73a7b0bab34e1b8c25acff9c7eb9b2d730c7a8e0 29284
mammals/aquatic/orca.png 5b1d5b9f2d2250cb6b5405dbfc843538f3f89f56ff535f8d37f6a9937d4fd4f1 16827
mammals/aquatic/otter.png 875ec74ddc9cf664ad988ddfa1972739260b2c59bf4963d06b3b337f31594307 113956
mammals/aquatic/sea_lion.png 0467907bf6b79bc0768fd2ff8a1289b56d1bc2cb83dce30e45d1adf72243fb51 20803
mammals/aquatic/whale.png a7b05910b7ba21f1425a2372ed7f3d1a159647d5b796216ccda76400d23f0c03 20341
mammals/badger.png de31acc03128709bd23fc76075c4c945478b259b2b63e15e2b890101d644be2a 25825
mammals/bears/bear.png aba4c267dac9003ba033fb0e6e7f09ed43b10e38ec625e5c2d6b67196e182c7f 29819
mammals/bears/european-bear.png bab9ff97e54a0a1961c7411f701f8f156b1d353a5e86cf85c6bc675aea8a32ff 186827
mammals/bears/toys/edward_bear.png aabc84e7655b26a8e48ef7b2646be7e0d4b5af33e7cc4f517ca940106aed9424 30886
mammals/bovines/bison.png 4316b377b8131e896b62c9e5ff7e0edd49e9d7b4d3acaff7243119f9f66fe65f 29387
mammals/bovines/bull.png 760a7f5b1f4c6da418f0b55d55802eadfbbffe1e5e02aceee0c52bd249cab434 34336
mammals/bovines/cow.png 741dccf90e341f2c69f0c9c60489f9ce9191f9c078b04b43233a8a77411491c4 33254
mammals/bovines/cow_white.png 0b189be2bb21dc9cccf842bf4cbee78f014fa60d07a5c78a20e54e2b664acdba 53486
mammals/bovines/gnu-baby-stand.png c37a5b9c3159a1f7c173e8aec6c2c268bb0e3c7ed42bc95bfdbaa17b11d0d15b 96430
mammals/bovines/gnu-baby.png 832582f35b7568b2c5f1f13f181833d039d2708b4d26b9c9c5851699d3da8951 129050
mammals/bovines/gnu-sitting.png 0e3cbfc84c5b58f862ffc98f25322c3a37de57b89114bd90134877361a7d6a69 46585
mammals/bovines/gnu-stand.png 70b16c784d788ad7545d3a96b40b009370783a285a4d49c953619aef3f9cb860 102931
mammals/bovines/goat.png 48bbfd85e3e2cfdc7eb473abdd968cf879e76ae39eed4407cea4c527203d759d 39366
mammals/bovines/indian_blackbuck.png 4220b0626d555b2e466dc7136cf430c783bff91847f38e331b7140bd4543a5bf 97554
mammals/bovines/mountaingoat.png 44409f27fbd8542c1bf71ed42065d0774042be54321586d4a224aa78697fbc2e 35149
mammals/bovines/ram.png 619f393899b04dc4d29d2d48af83d145caae89a95b357508ff67a065da67179a 41478
mammals/bovines/sheep.png 170207d37257b4186b4d2311a6a586ae8387c0dff95ce533d272f104a68785c3 49710
mammals/bovines/sheep_lamb.png f056bdaac25aaadcf3239ca3944bd5d8609b5a406a9831d636798e7955e6945f 22536
mammals/bovines/yak.png 5f9fc17ead4a7a34d8345bcedb4354578c34809b34c2e12b44ba6da607b58f9b 28290
mammals/bovines/zebu.png f9a56c941d60587d9bec259378e746428c2c3c414fadc9cee24071620b69e437 41123
mammals/camel/camel.png 910c74c113d617741e549c84ddfc73b69df69b8e7f647bc98815e33f0db7a5df 47360
mammals/camel/dromedary.png f7455abfa012318bf61702e01815d61bb0a3eb4bfea25b91a8f78437ee157c24 27928
mammals/cats/lion-2.png f608afc9531257d9322d80a609094abe5827351973cdc08e0fecd1cd2cb76788 77373
mammals/cats/tiger.png 699baad06e31c6274fc7bb576953dc0f66a6677a8286daefbdf454cf7b7395d6 33314
mammals/cats/tiger_sumatran.png 0b80b05c2920d0dbe788c377149a9d0ba19b63ef5ea809e1234ab837f5c48af6 146582
mammals/deer/caribou.png ff7448b99a3733c581ad176d1eb77d58038e73981dc5b67c020b148ea5fe9245 27385
mammals/deer/deer.png e620c6ba979e0c73536db240b9c4fd72541aad67674b4e9ad037aab0024c0844 21158
mammals/deer/doe.png c1d34426120c243c2357959e4307a3f1b395a049fa3fac285fe66c9298727612 44389
mammals/deer/wapiti.png 8ba175a8d56141e67ec6cebfc69404d0cfcdfa94f79635f6e2547c5ba22cffb1 24593
mammals/dogs/dingo.png 665de674b6adc0b89437cfa4e6635fcce180e4725367592383848d1f3e345484 16316
mammals/dogs/dog.png 63b3906f5b3cfcb406d8cf99ea0252a84d2d2b60795b5e275c0b4f2b9985b71a 31265
mammals/elephant.png c58332e1f4ef1f476ffb0e8a2df86f0b55c589496b3699de26cfeabd231a8a70 31901
mammals/equines/donkey.png e32ef9dfdf287af6b1a3120a2a18fc319a6763537d650085ae595c329208d10a 31580
mammals/equines/donkey_eating.png 3d5c1c5c4b2676232301c657b8e9cf7b84f93391fe0085bff85c9efb8e967ccf 40680
mammals/equines/horse.png 1c14aee30e0af4984fcfed4ec9b13769b4e16bb0eb49f95ccef65126b424c6fd 32185
mammals/equines/zebra.png f4a1329606b3d77b7064c8c42d3e247f522f1a48f852ef787a963ecf819f0a8c 40872
mammals/ferret.png 3afe4960c302ad43a71b9cd41be3552bb45615c57edd3bae2ab6babd54d432dc 46318
mammals/hedgehog.png f7e95f68ceee5999768fdc52938989b5badee4ef5a776707ef7f0d2f01ac41fe 40367
mammals/hippopotamus.png 3ed404f03c93de77bf1728faa208cc54681beef84f51ebda7689b916d51b3b94 33205
mammals/pig.png 41b6caefca7cb65f3c5ab5afdf77dc31b880031ecf1a422035cf7160ffb8b3da 32613
mammals/pig_golden.png 10648b2307bf0a71b9ecc602191d6b789a4e02968044b22a8490c313d6fec091 44207
mammals/pig_golden2.png 24e5e786150629381fb66a6efbbebad1d893efbdbae331fb245b832a1b37b07f 57387
mammals/rabbit_little.png 8c0e6c852e4a62bc7a80834edf9003323853d7d5a67981e7c8fb179afe93cf39 42005
mammals/rhino_black.png ebcb7df282100fcdd37658f422897c4437e38a073a0b63bfea6de829ea555fa2 41504
mammals/rodents/beaver.png 556401ea1b5f20f70ea26176b32ed494a1cc700287feba447ce3d737e9e5bdab 31010
mammals/rodents/capybara.png d9fa6ba63e64c31ddbfe74f28aa1e4b9bae184ee0841375c0160d4ebccd43ac0 97693
mammals/rodents/marmot.png 95ff9db558973e015ac81b37a66e1caf8e69687a6ff76c331c733b041f51246c 41640
mammals/rodents/mouse.png 57aaf4eff25656ac619266183f9e66671d52334d3a1516e457fe24d4e8931b5a 18297
mammals/rodents/rabbit-2.png 1c4cc3e7c35d2a5135758011222dbcbe7af6bf868d024c9361cb02c006f22e3c 35068
mammals/rodents/rabbit.png 31d51dd24faa75f48dc19450a3fa1896d951f049a867b77934de4629de49db8c 28592
mammals/rodents/rat.png 06a207bbd6c470132ee37456e4377c9080f2332e84d6692940ac37d408606ec0 16480
mammals/rodents/squirrel.png ac942f3b777493bb97cfd7e08cd5809bd31863ae73bd1fb681fa0e8e01f13fe7 59472
mammals/wildboar.png 74f3338d0acf2aa127a77bd475a14fa109d8be5b77586db0e9dc142621e387a2 46167
marsupials/kangaroo.png eae6784ba555c357e1330901e00450723f1a180966a5e4e9fd1a3344804d01bf 16832
marsupials/koala.png 1ca01ed025cfcaf47e8529b72b8390f8e9e7d5d23b2b3c1b3fdec8873c7ec0be 45239
marsupials/wombat.png b1aa4f2c3d82f428ee33e34ff3150bf5187b915f9bc50eaa2ed12a1614e376b0 43271
shellfish/abalone.png b449a4151c2d82f9b61fbfd5ee79e408f1b6a4a69482e177e936d26b884e9bb7 21289
shellfish/murray-mussel.png cd66a46e0654a948a222db8e8f4437add8dcf789654092daef35a23401268bf8 16482
"""
"""Path below `animals/`, sha256 and size in bytes of each file."""

DATASET = Dataset(
    name="stamps",
    summary="110 photographs of animals with transparent background, in colour, no labels",
    files=tuple(
        File(f"animals/{path}", digest, int(size))
        for path, digest, size in (line.split() for line in _LISTED.strip().splitlines())
    ),
    sources=("deb:tuxpaint-stamps-default=2022.06.04-1",),
    licence="GPL-2.0-or-later as a collection (Debian's copyright file lists the photographers)",
    citation="Kendrick and others 2022: Tux Paint stamps, collection 2022.06.04",
    homepage="https://tuxpaint.org/stamps/",
    comparable_note="not comparable with figures over ImageNet's validation set or any other labelled sample",
)


def load(root: str | os.PathLike[str] | None = None) -> dict[str, npt.NDArray[np.uint8]]:
    """Return name -> cut-out, uint8 (H, W, 4), red first, the last channel opacity; read-only, cropped to what shows.

    Names are the paths inside the collection without their suffix, e.g. `animals/birds/albatross`. Sizes differ, 60
    pixels at least. Raises DataError when a file is absent or altered.
    """
    from PIL import Image

    stamps: dict[str, npt.NDArray[np.uint8]] = {}
    for name, path in verified(DATASET, root).items():
        with Image.open(path) as image:
            pixels = np.array(image.convert("RGBA"), dtype=np.uint8)
        shown = pixels[..., 3] >= 128
        rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
        cut = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].copy()
        cut.flags.writeable = False
        stamps[name.removesuffix(".png")] = cut
    return stamps
