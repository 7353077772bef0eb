"""Inputs of forward() for the models of diffusers in their default configurations.

Diffusers has no rule for them. The sizes are those of a modest image, a short video or a few
seconds of sound, as the pipelines of diffusers pass them on.
"""

from collections.abc import Mapping

_LATENTS_AND_TEXT = (
    "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
    "encoder_hidden_states=float32[1,512,{joint_attention_dim}], "
    "img_ids=float32[1024,3]=0, txt_ids=float32[512,3]=0"
)
_VIDEO_AND_TEXT = (
    "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
    "encoder_hidden_states=float32[1,512,{text_dim}]"
)
_COGVIDEO = (
    "float32[1,13,{in_channels},60,90], "
    "float32[1,{max_text_seq_length},{text_embed_dim}], int64[1]=500"
)
_COGVIEW = (
    "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
    "encoder_hidden_states=float32[1,224,{text_embed_dim}], timestep=int64[1]=500, "
    "original_size=float32[1,2]=1024, target_size=float32[1,2]=1024, "
    "crop_coords=float32[1,2]=0"
)

INPUTS: Mapping[str, str | Mapping[str, str]] = {
    "AceStepTransformer1DModel": (
        "hidden_states=float32[1,250,{audio_acoustic_hidden_dim}], timestep=float32[1]=0.5, "
        "timestep_r=float32[1]=0.5, encoder_hidden_states=float32[1,256,{hidden_size}], "
        "context_latents=float32[1,250,128]"
    ),
    "AllegroTransformer3DModel": {
        "hidden_states": "torch.randn(1, 4, 5, 32, 32)",
        "encoder_hidden_states": "torch.randn(1, 512, 4096)",
        "timestep": "torch.full((1,), 500)",
        "encoder_attention_mask": "torch.ones(1, 512, dtype=torch.int64)",
        "image_rotary_emb": (
            "(tuple((torch.rand(n, 32), torch.rand(n, 32)) for n in (5, 16, 16)), "
            "tuple(torch.cartesian_prod(torch.arange(5), torch.arange(16), "
            "torch.arange(16)).T[:, None].contiguous()))"
        ),
    },
    "AnimaTextConditioner": (
        "source_hidden_states=float32[1,128,{source_dim}], "
        "target_input_ids=int64[1,128]<{target_vocab_size}, "
        "target_attention_mask=int64[1,128]=1, source_attention_mask=int64[1,128]=1"
    ),
    "AnyFlowFARTransformer3DModel": {
        "hidden_states": "torch.randn(1, 3, 16, 32, 32)",
        "timestep": "torch.full((1, 3), 500.0)",
        "r_timestep": "torch.full((1, 3), 250.0)",
        "encoder_hidden_states": "torch.randn(1, 512, 4096)",
        "chunk_partition": "[1, 3, 3]",
        "kv_cache": (
            '[{"full_cache": torch.randn(2, 1, 40, 1024, 128), '
            '"compressed_cache": torch.randn(2, 1, 40, 192, 128)} for _ in range(40)]'
        ),
        "kv_cache_flag": '{"num_cached_chunks": 2, "is_cache_step": False}',
    },
    "AnyFlowTransformer3DModel": (
        "hidden_states=float32[1,5,{in_channels},32,32], timestep=float32[1,5]=500, "
        "r_timestep=float32[1,5]=250, encoder_hidden_states=float32[1,512,{text_dim}]"
    ),
    "AsymmetricAutoencoderKL": "float32[1,{in_channels},256,256]",
    "AuraFlowTransformer2DModel": (
        "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
        "encoder_hidden_states=float32[1,256,{joint_attention_dim}], timestep=float32[1]=0.5"
    ),
    "AutoencoderDC": "float32[1,{in_channels},256,256]",
    "AutoencoderKL": "float32[1,{in_channels},256,256]",
    "AutoencoderKLCogVideoX": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLCosmos": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLFlux2": "float32[1,{in_channels},256,256]",
    "AutoencoderKLHunyuanImageRefiner": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLHunyuanVideo": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLHunyuanVideo15": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLKVAE": "float32[1,{in_channels},256,256]",
    "AutoencoderKLKVAEAudio": "float32[1,{num_channels},96000]",
    "AutoencoderKLKVAEVideo": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLLTX2Audio": "float32[1,{in_channels},200,{mel_bins}]",
    "AutoencoderKLLTX2Video": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLLTXVideo": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLMagvit": "float32[1,{in_channels},9,256,256]",
    "AutoencoderKLMiniMaxH3": "float32[1,{in_channels},34,256,256]",
    "AutoencoderKLMiniMaxH3Audio": "float32[1,1,64000]",
    "AutoencoderKLMochi": "float32[1,3,7,256,256]",
    "AutoencoderKLQwenImage": "float32[1,3,1,256,256]",
    "AutoencoderKLQwenImage21": "float32[1,{in_channels},1,256,256]",
    "AutoencoderKLTemporalDecoder": "float32[2,{in_channels},256,256], num_frames=2",
    "AutoencoderKLWan": "float32[1,{in_channels},9,256,256]",
    "AutoencoderOobleck": "float32[1,{audio_channels},65536]",
    "AutoencoderRAE": "float32[1,3,224,224]",
    "AutoencoderSAME": "float32[1,{audio_channels},65536]",
    "AutoencoderTiny": "float32[1,{in_channels},256,256]",
    "AutoencoderVidTok": "float32[1,{in_channels},17,256,256]",
    "BriaFibo2Transformer2DModel": (
        "hidden_states=float32[1,{in_channels},64,64], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,6,512,{cap_feat_dim}]"
    ),
    "BriaFiboTransformer2DModel": {
        "hidden_states": "torch.randn(1, 1024, 64)",
        "encoder_hidden_states": "torch.randn(1, 512, 4096)",
        "text_encoder_layers": "[torch.randn(1, 512, 2048) for _ in range(57)]",
        "timestep": "torch.full((1,), 500.0)",
        "img_ids": "torch.zeros(1024, 3)",
        "txt_ids": "torch.zeros(512, 3)",
    },
    "BriaTransformer2DModel": _LATENTS_AND_TEXT,
    "ChromaTransformer2DModel": _LATENTS_AND_TEXT,
    "ChronoEditTransformer3DModel": _VIDEO_AND_TEXT,
    "CogVideoXTransformer3DModel": _COGVIDEO,
    "CogView3PlusTransformer2DModel": _COGVIEW,
    "CogView4Transformer2DModel": _COGVIEW,
    "ConsisIDTransformer3DModel": _COGVIDEO,
    "ConsistencyDecoderVAE": "float32[1,{encoder_in_channels},256,256]",
    "ControlNetModel": (
        "float32[1,{in_channels},64,64], int64[1]=500, float32[1,77,{cross_attention_dim}], "
        "float32[1,{conditioning_channels},512,512]"
    ),
    "Cosmos3AVAEAudioTokenizer": "float32[1,{dec_out_channels},96000]",
    "Cosmos3OmniTransformer": {
        "input_ids": "torch.randint(151936, (128,))",
        "text_indexes": "torch.arange(128)",
        "position_ids": "torch.arange(1408).expand(3, -1)",
        "und_len": "128",
        "sequence_length": "1408",
        "vision_tokens": "[torch.randn(1, 48, 5, 32, 32)]",
        "vision_token_shapes": "[(5, 16, 16)]",
        "vision_sequence_indexes": "torch.arange(128, 1408)",
        "vision_mse_loss_indexes": "torch.arange(128, 1408)",
        "vision_timesteps": "torch.full((1280,), 500.0)",
        "vision_noisy_frame_indexes": "[torch.arange(5)]",
    },
    "CosmosTransformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,32,32], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,512,{text_embed_dim}], fps=30, "
        "padding_mask=float32[1,1,256,256]=0"
    ),
    "DiTTransformer2DModel": (
        "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
        "timestep=int64[1]=500, class_labels=int64[1]=207"
    ),
    "DreamLiteUNetModel": (
        "float32[1,{in_channels},64,64], int64[1]=500, float32[1,77,{cross_attention_dim}]"
    ),
    "ErnieImageTransformer2DModel": (
        "hidden_states=float32[1,{in_channels},32,32], timestep=float32[1]=500, "
        "text_bth=float32[1,256,{text_in_dim}], text_lens=int64[1]=256"
    ),
    "Flux2Transformer2DModel": (
        "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,512,{joint_attention_dim}], "
        "img_ids=float32[1024,4]=0, txt_ids=float32[512,4]=0, guidance=float32[1]=4"
    ),
    "Flux3Transformer2DModel": (
        "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,512,{joint_attention_dim}], "
        "img_ids=float32[1024,4]=0, txt_ids=float32[512,4]=0"
    ),
    "FluxControlNetModel": (
        "hidden_states=float32[1,1024,{in_channels}], "
        "controlnet_cond=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,512,{joint_attention_dim}], "
        "pooled_projections=float32[1,{pooled_projection_dim}], img_ids=float32[1024,3]=0, "
        "txt_ids=float32[512,3]=0"
    ),
    "FluxTransformer2DModel": (
        "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,512,{joint_attention_dim}], "
        "img_ids=float32[1024,3]=0, txt_ids=float32[512,3]=0, "
        "pooled_projections=float32[1,{pooled_projection_dim}]"
    ),
    "GlmImageTransformer2DModel": (
        "hidden_states=float32[1,{in_channels},64,64], "
        "encoder_hidden_states=float32[1,64,{text_embed_dim}], "
        "prior_token_id=int64[1,1024]<{prior_vq_quantizer_codebook_size}, "
        "prior_token_drop=bool[1,1024]=false, timestep=int64[1]=500, "
        "target_size=float32[1,2]=512, crop_coords=float32[1,2]=0"
    ),
    "HeliosTransformer3DModel": {
        "hidden_states": "torch.randn(1, 16, 9, 32, 32)",
        "timestep": "torch.full((1,), 500)",
        "encoder_hidden_states": "torch.randn(1, 512, 4096)",
        "indices_hidden_states": "torch.arange(20, 29)[None]",
        "indices_latents_history_short": "torch.tensor([[0, 19]])",
        "indices_latents_history_mid": "torch.arange(17, 19)[None]",
        "indices_latents_history_long": "torch.arange(1, 17)[None]",
        "latents_history_short": "torch.randn(1, 16, 2, 32, 32)",
        "latents_history_mid": "torch.randn(1, 16, 2, 32, 32)",
        "latents_history_long": "torch.randn(1, 16, 16, 32, 32)",
    },
    "HunyuanImageTransformer2DModel": (
        "hidden_states=float32[1,{in_channels},32,32], timestep=float32[1]=500, "
        "encoder_hidden_states=float32[1,256,{text_embed_dim}], "
        "encoder_attention_mask=int64[1,256]=1"
    ),
    "HunyuanVideo15Transformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,32,32], timestep=float32[1]=500, "
        "encoder_hidden_states=float32[1,256,{text_embed_dim}], "
        "encoder_attention_mask=int64[1,256]=1, "
        "encoder_hidden_states_2=float32[1,256,{text_embed_2_dim}], "
        "encoder_attention_mask_2=int64[1,256]=1, "
        "image_embeds=float32[1,729,{image_embed_dim}]"
    ),
    "HunyuanVideoTransformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
        "encoder_hidden_states=float32[1,256,{text_embed_dim}], "
        "encoder_attention_mask=int64[1,256]=1, "
        "pooled_projections=float32[1,{pooled_projection_dim}], guidance=float32[1]=6"
    ),
    "I2VGenXLUNet": (
        "sample=float32[1,{in_channels},16,32,32], timestep=int64[1]=500, fps=int64[1]=16, "
        "image_latents=float32[1,{in_channels},16,32,32], "
        "image_embeddings=float32[1,1,{cross_attention_dim}], "
        "encoder_hidden_states=float32[1,77,{cross_attention_dim}]"
    ),
    "Ideogram4Transformer2DModel": {
        "hidden_states": "torch.randn(1, 1280, 128)",
        "timestep": "torch.full((1,), 0.5)",
        "encoder_hidden_states": "torch.randn(1, 1280, 53248)",
        "position_ids": "torch.arange(1280).reshape(1, 1280, 1).expand(-1, -1, 3)",
        "segment_ids": "torch.ones(1, 1280, dtype=torch.int64)",
        "indicator": "torch.where(torch.arange(1280) < 256, 3, 2)[None]",
    },
    "JoyImageEditPlusTransformer3DModel": {
        "hidden_states": "torch.randn(1, 2048, 16, 1, 2, 2)",
        "timestep": "torch.full((1,), 500.0)",
        "encoder_hidden_states": "torch.randn(1, 512, 4096)",
        "encoder_hidden_states_mask": "torch.ones(1, 512)",
        "shape_list": "[[(1, 32, 32), (1, 32, 32)]]",
    },
    "JoyImageEditTransformer3DModel": (
        "hidden_states=float32[1,2,{in_channels},1,64,64], timestep=float32[1]=500, "
        "encoder_hidden_states=float32[1,512,{text_dim}]"
    ),
    "Kandinsky3UNet": (
        "float32[1,{in_channels},64,64], int64[1]=500, "
        "encoder_hidden_states=float32[1,128,{encoder_hid_dim}], "
        "encoder_attention_mask=int64[1,128]=1"
    ),
    "Kandinsky5Transformer3DModel": {
        "hidden_states": "torch.randn(1, 5, 32, 32, 4)",
        "encoder_hidden_states": "torch.randn(1, 256, 3584)",
        "timestep": "torch.full((1,), 500.0)",
        "pooled_projections": "torch.randn(1, 768)",
        "visual_rope_pos": "[torch.arange(5), torch.arange(16), torch.arange(16)]",
        "text_rope_pos": "torch.arange(256)",
        "scale_factor": "(1.0, 2.0, 2.0)",
    },
    "Kandinsky6SRLatentUpscalerBank": "latents=float32[1,{in_channels},5,32,32], scale=2",
    "Kandinsky6SRTransformer3DModel": (
        "hidden_states=float32[1,5,32,32,129], timestep=float32[1]=500"
    ),
    "Kandinsky6SRVAE": "float32[1,{in_channels},9,256,256]",
    "Kandinsky6Transformer3DModel": (
        "hidden_states=float32[1,5,32,32,33], "
        "encoder_hidden_states=float32[1,256,{in_text_dim}], "
        "pooled_projections=float32[1,{in_text_dim2}], timestep=float32[1]=500, "
        "audio_hidden_states=float32[1,250,{in_audio_dim}]"
    ),
    "Krea2Transformer2DModel": (
        "hidden_states=float32[1,1024,{in_channels}], "
        "encoder_hidden_states=float32[1,256,{num_text_layers},{text_hidden_dim}], "
        "timestep=float32[1]=0.5, position_ids=int64[1280,3]<32, "
        "encoder_attention_mask=bool[1,256]=true"
    ),
    "LTX2VideoDiffusionDecoderModel": "float32[1,{latent_channels},3,8,8]",
    "LTX2VideoTransformer3DModel": (
        "hidden_states=float32[1,1024,{in_channels}], "
        "audio_hidden_states=float32[1,126,{audio_in_channels}], "
        "encoder_hidden_states=float32[1,256,{caption_channels}], "
        "audio_encoder_hidden_states=float32[1,256,{caption_channels}], "
        "timestep=float32[1]=500, encoder_attention_mask=int64[1,256]=1, "
        "audio_encoder_attention_mask=int64[1,256]=1, num_frames=4, height=16, width=16, "
        "audio_num_frames=126"
    ),
    "LTXVideoTransformer3DModel": (
        "hidden_states=float32[1,1024,{in_channels}], timestep=int64[1]=500, "
        "encoder_hidden_states=float32[1,128,{caption_channels}], "
        "encoder_attention_mask=int64[1,128]=1, num_frames=4, height=16, width=16"
    ),
    "LongCatAudioDiTTransformer": (
        "hidden_states=float32[1,256,{latent_dim}], "
        "encoder_hidden_states=float32[1,128,{dit_text_dim}], "
        "encoder_attention_mask=bool[1,128]=true, timestep=float32[1]=0.5, "
        "attention_mask=bool[1,256]=true, latent_cond=float32[1,256,{latent_dim}]"
    ),
    "LongCatAudioDiTVae": "float32[1,{in_channels},65536]",
    "LongCatImageTransformer2DModel": _LATENTS_AND_TEXT,
    "Lumina2Transformer2DModel": (
        "float32[1,{in_channels},{sample_size},{sample_size}], float32[1]=0.5, "
        "float32[1,256,{cap_feat_dim}], bool[1,256]=true"
    ),
    "MMAudioVAE": "float32[1,131072]",
    "MMAudioVocoder": "float32[1,{num_mels},256]",
    "MiniMaxH3Transformer3DModel": {
        "hidden_states": "torch.randn(1, 1024, 96)",
        "audio_hidden_states": "torch.randn(1, 128, 32)",
        "encoder_hidden_states": "torch.randn(1, 256, 5120)",
        "timestep": "torch.full((1,), 0.5)",
        "timestep_indices": "torch.zeros(1408, dtype=torch.int64)",
        "token_tags": (
            "torch.cat([torch.full((256,), 1), torch.zeros(1024, dtype=torch.int64), "
            "torch.full((128,), 2)])"
        ),
        "position_ids": "torch.randint(0, 32, (1408, 3))",
        "video_indices": "torch.arange(256, 1280)",
        "audio_indices": "torch.arange(1280, 1408)",
        "text_indices": "torch.arange(256)",
    },
    "MiniMaxMusic3ConditionEncoder": "float32[1,250,32768]",
    "MiniMaxMusic3RVQDepthDecoder": "float32[1,{num_codebooks},{hidden_size}]",
    "MiniMaxMusic3Transformer1DModel": (
        "hidden_states=float32[1,{in_channels},861], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,861,{condition_dim}]"
    ),
    "MiniMaxMusic3Vocoder": "float32[1,{latent_channels},256]",
    "MochiTransformer3DModel": (
        "float32[1,{in_channels},4,32,32], "
        "float32[1,{max_sequence_length},{text_embed_dim}], int64[1]=500, "
        "bool[1,{max_sequence_length}]=true"
    ),
    "MotifVideoTransformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
        "encoder_hidden_states=float32[1,256,{text_embed_dim}], "
        "encoder_attention_mask=bool[1,256]=true"
    ),
    "NucleusMoEImageTransformer2DModel": {
        "hidden_states": "torch.randn(1, 1024, 64)",
        "img_shapes": "[(1, 32, 32)]",
        "encoder_hidden_states": "torch.randn(1, 256, 3584)",
        "timestep": "torch.full((1,), 0.5)",
    },
    "OvisImageTransformer2DModel": (
        "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,256,{joint_attention_dim}], "
        "img_ids=float32[1024,3]=0, txt_ids=float32[256,3]=0"
    ),
    "PRXTransformer2DModel": (
        "float32[1,{in_channels},64,64], float32[1]=0.5, float32[1,256,{context_in_dim}]"
    ),
    "PixArtTransformer2DModel": {
        "hidden_states": "torch.randn(1, 4, 128, 128)",
        "encoder_hidden_states": "torch.randn(1, 120, 1152)",
        "timestep": "torch.full((1,), 500)",
        "added_cond_kwargs": (
            '{"resolution": torch.full((1, 2), 1024.0), "aspect_ratio": torch.ones(1, 1)}'
        ),
        "encoder_attention_mask": "torch.ones(1, 120)",
    },
    "PriorTransformer": (
        "float32[1,{embedding_dim}], int64[1]=500, float32[1,{embedding_dim}], "
        "float32[1,{num_embeddings},{embedding_dim}]"
    ),
    "QwenImage21Transformer2DModel": {
        "hidden_states": "torch.randn(1, 1024, 64)",
        "encoder_hidden_states": "torch.randn(1, 256, 4096)",
        "timestep": "torch.full((1,), 0.5)",
        "img_shapes": "[[(1, 32, 32)]]",
        "img_mask": "torch.arange(512)[None] >= 256",
    },
    "QwenImageControlNetModel": {
        "hidden_states": "torch.randn(1, 1024, 64)",
        "controlnet_cond": "torch.randn(1, 1024, 64)",
        "encoder_hidden_states": "torch.randn(1, 256, 3584)",
        "timestep": "torch.full((1,), 0.5)",
        "img_shapes": "[[(1, 32, 32)]]",
    },
    "QwenImageTransformer2DModel": {
        "hidden_states": "torch.randn(1, 1024, 64)",
        "encoder_hidden_states": "torch.randn(1, 256, 3584)",
        "timestep": "torch.full((1,), 0.5)",
        "img_shapes": "[[(1, 32, 32)]]",
    },
    "RFD4ProteinaTransformer": {
        "bb_ca": "torch.randn(1, 128, 3)",
        "local_latents": "torch.randn(1, 128, 32)",
        "bb_ca_time": "torch.full((1,), 0.5)",
        "local_latents_time": "torch.full((1,), 0.5)",
        "padding_mask": "torch.ones(1, 128, dtype=torch.bool)",
        "token_type": "torch.zeros(1, 128, dtype=torch.int64)",
        "atom37_mask": "torch.ones(1, 128, 37, dtype=torch.bool)",
        "conditioning": (
            '{"is_in_context_conditioning": torch.zeros(1, 128, dtype=torch.bool), '
            '"supports_local_latent": torch.ones(1, 128, dtype=torch.bool), '
            '"molecule_iid": torch.zeros(1, 128, dtype=torch.int64), '
            '"molecule_entity_id": torch.zeros(1, 128, dtype=torch.int64), '
            '"token_bond_path_length": torch.randint(0, 8, (1, 128, 128)), '
            '"condition_index-group_1_token": torch.zeros(1, 128), '
            '"condition_hbond_1_atom": torch.zeros(1, 128, 37), '
            '"condition_pistack_1_atom": torch.zeros(1, 128, 37), '
            '"condition_pication_1_atom": torch.zeros(1, 128, 37), '
            '"condition_saltbridge_1_atom": torch.zeros(1, 128, 37), '
            '"condition_hydrophobic_1_atom": torch.zeros(1, 128, 37), '
            '"condition_metal-coord_1_atom": torch.zeros(1, 128, 37)}'
        ),
    },
    "SD3ControlNetModel": (
        "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
        "controlnet_cond=float32[1,{in_channels},{sample_size},{sample_size}], "
        "encoder_hidden_states=float32[1,154,{joint_attention_dim}], "
        "pooled_projections=float32[1,{pooled_projection_dim}], timestep=int64[1]=500"
    ),
    "SD3Transformer2DModel": (
        "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
        "encoder_hidden_states=float32[1,154,{joint_attention_dim}], "
        "pooled_projections=float32[1,{pooled_projection_dim}], timestep=int64[1]=500"
    ),
    "SanaControlNetModel": (
        "float32[1,{in_channels},{sample_size},{sample_size}], "
        "float32[1,300,{caption_channels}], int64[1]=500, "
        "float32[1,{in_channels},{sample_size},{sample_size}], "
        "encoder_attention_mask=int64[1,300]=1"
    ),
    "SanaTransformer2DModel": (
        "float32[1,{in_channels},{sample_size},{sample_size}], "
        "float32[1,300,{caption_channels}], int64[1]=500"
    ),
    "SanaVideoTransformer3DModel": (
        "float32[1,{in_channels},5,32,32], float32[1,300,{caption_channels}], int64[1]=500, "
        "encoder_attention_mask=int64[1,300]=1"
    ),
    "SanaWMLTX2RefinerTransformer3DModel": {
        "hidden_states": "torch.randn(1, 768, 128)",
        "encoder_hidden_states": "torch.randn(1, 256, 3840)",
        "timestep": "torch.full((1, 768), 500.0)",
        "video_rotary_emb": "(torch.randn(1, 768, 4096), torch.randn(1, 768, 4096))",
        "encoder_attention_mask": "torch.ones(1, 256)",
    },
    "SanaWMTransformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,16,16], timestep=int64[1,1,5]=500, "
        "encoder_hidden_states=float32[1,1,300,{caption_channels}], "
        "encoder_attention_mask=int64[1,300]=1, camera_conditions=float32[1,5,20], "
        "chunk_plucker=float32[1,{chunk_plucker_channels},5,16,16]"
    ),
    "SkyReelsV2Transformer3DModel": _VIDEO_AND_TEXT,
    "SparseControlNetModel": (
        "float32[1,{in_channels},16,32,32], int64[1]=500, "
        "float32[16,77,{cross_attention_dim}], float32[1,{conditioning_channels},16,32,32], "
        "conditioning_mask=float32[1,1,16,32,32]=1"
    ),
    "StableAudio3DiTModel": (
        "hidden_states=float32[1,{io_channels},256], timestep=float32[1]=0.5, "
        "encoder_hidden_states=float32[1,128,{cond_token_dim}], "
        "global_hidden_states=float32[1,{global_cond_dim}], "
        "encoder_attention_mask=bool[1,128]=true, "
        "local_add_cond=float32[1,{local_add_cond_dim},256]"
    ),
    "StableAudioDiTModel": {
        "hidden_states": "torch.randn(1, 64, 1024)",
        "timestep": "torch.full((1,), 0.5)",
        "encoder_hidden_states": "torch.randn(1, 130, 768)",
        "global_hidden_states": "torch.randn(1, 1, 1536)",
        "rotary_embedding": "(torch.randn(1025, 32), torch.randn(1025, 32))",
    },
    "StableCascadeUNet": (
        "float32[1,{in_channels},24,24], float32[1]=0.5, "
        "float32[1,1,{clip_text_pooled_in_channels}]"
    ),
    "T2IAdapter": "float32[1,{in_channels},512,512]",
    "T5FilmDecoder": {
        "encodings_and_masks": (
            "[(torch.randn(1, 2048, 768), torch.ones(1, 2048)), (torch.randn(1, 256, 768), "
            "torch.ones(1, 256))]"
        ),
        "decoder_input_tokens": "torch.randn(1, 256, 128)",
        "decoder_noise_time": "torch.full((1,), 0.5)",
    },
    "UNet2DConditionModel": (
        "float32[1,{in_channels},64,64], int64[1]=500, float32[1,77,{cross_attention_dim}]"
    ),
    "UNet2DModel": "float32[1,{in_channels},64,64], int64[1]=500",
    "UNet3DConditionModel": (
        "float32[1,{in_channels},16,32,32], int64[1]=500, float32[1,77,{cross_attention_dim}]"
    ),
    "UNetControlNetXSModel": (
        "float32[1,4,64,64], int64[1]=500, float32[1,77,{cross_attention_dim}], "
        "float32[1,{ctrl_conditioning_channels},512,512]"
    ),
    "UNetMotionModel": (  # 16 frames, and the prompt for each of them
        "float32[1,{in_channels},16,32,32], int64[1]=500, float32[16,77,{cross_attention_dim}]"
    ),
    "UNetSpatioTemporalConditionModel": (
        "float32[1,14,{in_channels},64,64], float32[1]=0.5, "
        "float32[1,1,{cross_attention_dim}], float32[1,3]"
    ),
    "UVit2DModel": (
        "int64[1,16,16]<{codebook_size}, float32[1,77,{encoder_hidden_size}], "
        "float32[1,{cond_embed_dim}], float32[1,5]"
    ),
    "VQModel": "float32[1,{in_channels},256,256]",
    "WanAnimate2Transformer3DModel": {
        "hidden_states": "[torch.randn(16, 5, 32, 32)]",
        "timestep": "torch.full((1,), 500)",
        "encoder_hidden_states": "[torch.randn(512, 4096)]",
        "condition_latents": "[torch.randn(20, 5, 32, 32)]",
        "kv_cache": (
            "__import__('diffusers.models.transformers.transformer_wan_animate_2', "
            "fromlist=['WanAnimate2KVCache']).WanAnimate2KVCache(40)"
        ),
        "kv_cache_mode": '"extract"',
        "seq_len": "1280",
        "encoder_hidden_states_image": "torch.randn(1, 257, 1280)",
        "offset_grid_sizes": "torch.tensor([[5, 16, 16]])",
    },
    "WanAnimateTransformer3DModel": (
        "hidden_states=float32[1,{in_channels},6,32,32], timestep=int64[1]=500, "
        "encoder_hidden_states=float32[1,512,{text_dim}], "
        "encoder_hidden_states_image=float32[1,257,{image_dim}], "
        "pose_hidden_states=float32[1,{latent_channels},5,32,32], "
        "face_pixel_values=float32[1,3,17,{motion_encoder_size},{motion_encoder_size}]"
    ),
    "WanTransformer3DModel": _VIDEO_AND_TEXT,
    "WanVACETransformer3DModel": (
        "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
        "encoder_hidden_states=float32[1,512,{text_dim}], "
        "control_hidden_states=float32[1,{vace_in_channels},5,32,32]"
    ),
    "ZImageTransformer2DModel": {
        "x": "[torch.randn(16, 1, 64, 64)]",
        "t": "torch.full((1,), 0.5)",
        "cap_feats": "[torch.randn(128, 2560)]",
    },
}
"""Class -> its inputs in the language of `--inputs`, or names and Python expressions where that
cannot say them. A name in braces is an argument of the class, with its default."""

REFUSALS: Mapping[str, str] = {
    "AutoencoderKLAllegro": (
        "its encode() raises NotImplementedError with its default use_tiling=False"
    ),
    "ControlNetUnionModel": (
        "its default addition_time_embed_dim is None, which its constructor multiplies"
    ),
    "ControlNetXSAdapter": (
        "its forward() always raises: it runs only as part of UNetControlNetXSModel"
    ),
    "CosmosControlNetModel": (
        "its defaults contradict each other: its patches are model_channels=2048 wide, "
        "its blocks 32 * 128 = 4096"
    ),
    "DreamLiteTransformer2DModel": (
        "its default in_channels is None, which its constructor refuses"
    ),
    "EasyAnimateTransformer3DModel": (
        "its default in_channels and patch_size are None, "
        "of which its constructor makes a convolution"
    ),
    "HiDreamImageTransformer2DModel": (
        "its default patch_size is None, which its constructor multiplies"
    ),
    "HunyuanDiT2DControlNetModel": (
        "its default in_channels and patch_size are None, by which its constructor divides"
    ),
    "HunyuanDiT2DModel": (
        "its default in_channels and patch_size are None, which its constructor multiplies"
    ),
    "HunyuanVideoFramepackTransformer3DModel": (
        "its forward() calls clean_x_embedder, "
        "which is None with its default has_clean_x_embedder=False"
    ),
    "LatteTransformer3DModel": "its default patch_size is None, and PatchEmbed divides by it",
    "LuminaNextDiT2DModel": (
        "its default num_kv_heads is None, and Attention multiplies by it (qk_norm)"
    ),
    "MotionAdapter": ("its forward() does nothing: it holds the motion modules of UNetMotionModel"),
    "OmniGenTransformer2DModel": (
        'its default rope_scaling is None, and its rope reads rope_scaling["short_factor"]'
    ),
    "Transformer2DModel": (
        "its defaults set none of in_channels, "
        "num_vector_embeds and patch_size: it raises ValueError"
    ),
    "TransformerTemporalModel": ("its default in_channels is None, and GroupNorm needs a number"),
    "UNet1DModel": (
        "its defaults contradict each other: its first convolution takes in_channels=2 channels, "
        "and is given 64 of the time embedding besides (extra_in_channels=0)"
    ),
    "ZImageControlNetModel": (
        "its default control_layers_places is None, and it asserts that 0 is among them"
    ),
}
"""Class -> why its default configuration does not run."""
