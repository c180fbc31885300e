"""Explaining image classifiers by counterfactual generation (Chang, Creager, Goldenberg, Duvenaud; ICLR 2019).

Which region, replaced by something that says nothing, changes the class? Such an explanation has to choose a
replacement. Zeros, a constant, noise and blur are unlike anything the classifier was trained on, so its answer mixes
what the region contributed with how odd the picture looks. The paper lets a generative model paint the region from its
surroundings, which never saw the pixels under test, and learns a Bernoulli mask by gradient descent through a Concrete
relaxation (FIDO): the smallest region whose removal changes the class (SDR), or whose presence suffices (SSR). The
regions are said to be smaller, more compact and nearer to what a person would mark.

Re-run here: both objectives with mean, blur, noise, a conditional VAE and a small conditional GAN, trained in the
pipeline; the deterministic mask of Fong and Vedaldi; gradient, occlusion and random orders. Maps are compared where
they reach the same score or the same area, each method with the penalty that suits it on held-out scenes, under
in-fillers that no map was made with: a regression trained apart, and the true ground, which is known.

Scaled down: 28-pixel scenes, a Fashion-MNIST object of 14 pixels on a photographed texture, in place of ImageNet; a
classifier of four convolutions and in-fillers of thousands of weights. Deviations stand in study.yaml.
"""
