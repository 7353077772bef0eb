"""Orb v3: attention-gated message passing on a periodic graph, energy with forces as gradients."""

from functools import partial

import torch
from orb_models.forcefield.angular import SphericalHarmonics
from orb_models.forcefield.base import AtomGraphs
from orb_models.forcefield.forcefield_heads import EnergyHead, ForceHead
from orb_models.forcefield.gns import MoleculeGNS
from orb_models.forcefield.rbf import BesselBasis


class Model(torch.nn.Module):
    def __init__(self, dim, steps):
        super().__init__()
        self.net = MoleculeGNS(
            latent_dim=dim,
            num_message_passing_steps=steps,
            num_mlp_layers=2,
            mlp_hidden_dim=2 * dim,
            rbf_transform=BesselBasis(r_max=6.0, num_bases=8),
            angular_transform=SphericalHarmonics(lmax=3, normalize=True, normalization="component"),
            outer_product_with_cutoff=True,
            use_embedding=True,
            interaction_params={"distance_cutoff": True, "attention_gate": "sigmoid"},
            node_feature_names=["feat"],
            edge_feature_names=["feat"],
            activation="silu",
            mlp_norm="rms_norm",
        )
        head = partial(
            EnergyHead, latent_dim=dim, num_mlp_layers=1, mlp_hidden_dim=dim, activation="silu"
        )
        self.energy = head(predict_atom_avg=True)
        self.force = ForceHead(
            latent_dim=dim,
            num_mlp_layers=1,
            mlp_hidden_dim=dim,
            remove_mean=True,
            remove_torque_for_nonpbc_systems=False,
        )

    def forward(self, positions, numbers, senders, receivers):
        vectors = positions[receivers] - positions[senders]
        graph = AtomGraphs(
            senders=senders,
            receivers=receivers,
            n_node=torch.tensor([len(positions)]),
            n_edge=torch.tensor([len(senders)]),
            node_features={
                "atomic_numbers": numbers,
                "atomic_numbers_embedding": torch.nn.functional.one_hot(numbers, 118).float(),
                "positions": positions,
            },
            edge_features={"vectors": vectors, "unit_shifts": torch.zeros_like(vectors)},
            system_features={
                "cell": torch.zeros(1, 3, 3),
                "pbc": torch.zeros(1, 3, dtype=torch.bool),
            },
            node_targets=None,
            edge_targets=None,
            system_targets=None,
            system_id=None,
            fix_atoms=None,
            tags=None,
            radius=6.0,
            max_num_neighbors=torch.tensor([120]),
        )
        features = self.net(graph)["node_features"]
        return self.energy(features, graph), self.force(features, graph)


def get_inputs():
    positions = torch.rand(24, 3) * 8
    near = (torch.cdist(positions, positions) < 6) & ~torch.eye(24, dtype=torch.bool)
    senders, receivers = near.nonzero(as_tuple=True)
    return [positions, torch.randint(1, 20, (24,)), senders, receivers]


def get_init_inputs():
    return [128, 4]
