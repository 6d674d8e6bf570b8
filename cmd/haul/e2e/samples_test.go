package e2e

// smallNetwork are settings of a GT+RL run that takes a fraction of a second.
func smallNetwork() (args []string) {
	for _, set := range []string{"problem.num_customers=5", "training.num_batches_per_epoch=2", "training.batch_size=240", "training.validation_instances=20",
		"training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1", "baseline.starts=0", "baseline.eval_batches=1"} {
		args = append(args, "--set", set)
	}
	return args
}
