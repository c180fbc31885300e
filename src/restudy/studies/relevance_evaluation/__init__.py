"""Evaluating the visualization of what a network has learned (Samek, Binder, Montavon, Bach, Mueller 2017).

Three ways to say which pixels a decision rests on: the size of the derivative (sensitivity), deconvolution, and
layer-wise relevance propagation (LRP), which hands the score of the class down from layer to layer without loss. The
paper measures heatmaps without a human eye: regions are replaced by noise, the most relevant first, and the area over
the falling curve of the class's score (AOPC) is compared. LRP is said to win on three data sets, to be less noisy, and
to react less to small changes of the input; conservation of relevance from layer to layer is what sets it apart.

Re-run here: conservation and the identity with gradient x input in four architectures; AOPC in both orders for five
methods and two maps that know no model, with five fills; how the fill decides the ranking where the background is
black; complexity, jumps, likeness within a class, signs, stability, class average against individual image. Small CNNs
on Fashion-MNIST, on MNIST digits, and on garments pasted on photographs, where no pixel is black for free;
EfficientNet-Lite0 on 110 scenes with cut-out animals as a track of its own.

Scaled down: networks, data and steps at every preset but `paper`. Deviations stand in study.yaml and are shown beside
the verdicts. The class explained is the one that the network predicts on the unperturbed image.
"""
