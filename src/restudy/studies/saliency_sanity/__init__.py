"""Sanity checks for saliency maps (Adebayo, Gilmer, Muelly, Goodfellow, Hardt, Kim; NeurIPS 2018, arXiv:1810.03292).

The paper asks whether a saliency map has anything to do with the model that it is said to explain, and proposes two
checks. Model-parameter test: draw the layers of the trained network anew, from the logits downwards, or one layer
alone; a map that hardly changes does not depend on what was learned. Data test: train on permuted labels, so that
nothing systematic is left to learn; a map that still shows the same structure depends on neither labels nor model.
Gradients, SmoothGrad and GradCAM respond to both; guided backprop and guided GradCAM hardly change when the upper
layers are random; maps that multiply with the input keep its shape whatever the network.

Re-run here: both checks, cascading in both directions and layer by layer, on a CNN with Fashion-MNIST and an MLP with
MNIST digits, for nine methods and four similarity metrics, with four controls (iid noise, the edges of the image, an
honest retraining, two random networks); and the cascade on EfficientNet-Lite0 with photographs as a track of its own.
The class explained is always the one that the trained network predicts.

Scaled down: sizes, epochs and numbers of images at every preset but `paper`; see study.yaml. Deviations: Lite0 stands
for Inception v3, initial weights are torch's default except in `paper` and in the arm with the paper's initial
weights, HOG cells are 4 pixels wide, SSIM states its data range. The table in study.yaml is shown beside the verdicts.
"""
