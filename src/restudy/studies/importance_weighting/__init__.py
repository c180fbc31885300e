"""Importance weighted autoencoders (Burda, Grosse, Salakhutdinov; ICLR 2016).

A variational autoencoder maximises a lower bound of log p(x) from one sample of its encoder. The paper takes k samples,
averages their importance weights inside the logarithm, and so gets a tighter bound L_k, whose gradient is again taken
through the samples. Trained on it, the same network is said to reach a better log-likelihood and to use more of its
latent units; a trained VAE gets better when it goes on with L_k, a trained IWAE gets worse when it goes back to L_1.

Re-run here on binarised Fashion-MNIST: L_k against k on trained networks and on a model whose log p(x) is known; the
identities behind k = 1 and behind the gradient; VAE and IWAE at several k; active units; the swap, each beside a run
that simply goes on; pixels drawn once against pixels drawn anew at every use; and the known reverse side, the
signal-to-noise ratio of the encoder's gradient against k, with the estimators STL and DReG. Log-likelihoods are L_500
with its own error.

Scaled down: 5,000 images, 2,500 steps of 50 images, k up to 10. Two stochastic layers, k = 20, signal-to-noise on
trained networks and training sets of 1,000 images belong to the presets workstation and paper. Deviations stand in
study.yaml and are shown beside the verdicts.
"""
