"""Exchanges about Wherry, and about technical terms of language models."""
# ruff: noqa: E501  (lists of wordings)
# fmt: off

from __future__ import annotations

from random import Random

from grammar import Exchange
from knowledge import qa

_ASK = (
    "[What is {x}?|What's {x}?|Tell me about {x}.|Explain {x}.|Can you explain {x}?|What does {x} mean?|Do you know what {x} is?|"
    "What do you know about {x}?|Please explain {x} to me.|What exactly is {x}?|Define {x}.|Describe {x}.]"
)
# Names of a technical term, then the wordings of its explanation.
TERMS: tuple[tuple[str, str], ...] = (
    ("Wherry|wherry|the Wherry toolchain|the Wherry project|this project",
     "[Wherry is a toolchain that compiles language models with Apache TVM, so that they run on CPUs, GPUs, phones and in browsers.|Wherry compiles a language model once and runs it anywhere: on servers, phones and in browsers.|Wherry is a tool to compile and run language models. It is named after a light boat.]"),
    ("a wherry", "[A wherry is a light boat that carries people or goods across the water. It is also the name of this toolchain.|A wherry is a light rowing boat. The toolchain Wherry has its name from it.]"),
    ("wherry run", "[The command wherry run compiles a model if it has to, loads it and starts a chat.|With wherry run you can chat with a model: it plans, converts, compiles, loads and runs it.]"),
    ("wherry compile", "[The command wherry compile turns a model into a compiled library for a target, such as a CPU, a GPU, a phone or the browser.|With wherry compile you build a model for one target, for example cuda, metal or webgpu.]"),
    ("wherry serve", "[The command wherry serve starts a server with an OpenAI-compatible interface for a model.|With wherry serve you offer a model over HTTP, in the way of the OpenAI API.]"),
    ("wherry chat", "[The command wherry chat opens a chat with a compiled model in the terminal.|With wherry chat you talk to a compiled model in your terminal.]"),
    ("wherry convert", "[The command wherry convert turns the weights of a model into the layout which the runtime needs, and quantizes them.|With wherry convert you convert and quantize the weights of a model.]"),
    ("wherry doctor", "[The command wherry doctor checks your machine and says which devices and tools it has found.]"),
    ("quantization|quantisation|quantizing a model|4-bit quantization",
     "[Quantization stores the weights of a model with fewer bits, for example 4 instead of 16, so that the model is smaller and faster.|Quantization means to round the numbers of a model to a few bits. The model becomes smaller and needs less memory.]"),
    ("a KV cache|the KV cache|a key-value cache|KV caching",
     "[A KV cache keeps the keys and values of the earlier tokens, so that attention does not have to compute them again.|The KV cache is the memory of a language model for the text so far. It saves the keys and values of each token.]"),
    ("a token|tokens|a token in a language model",
     "[A token is a small piece of text, often a word or a part of a word. Language models read and write tokens.|A token is a piece of text that a language model works with, such as a short word.]"),
    ("a tokenizer|tokenization", "[A tokenizer cuts text into tokens and gives each of them a number.|A tokenizer turns text into tokens, and tokens back into text.]"),
    ("a compiler|compilers", "[A compiler translates a program into a form that a machine can run fast.|A compiler is a program which turns code into machine code.]"),
    ("a GPU|GPUs|a graphics card", "[A GPU is a processor that does very many simple calculations at the same time.|A GPU is a graphics processor. It is good at doing many calculations in parallel, so it runs language models fast.]"),
    ("a CPU|CPUs|a processor", "[A CPU is the main processor of a computer. It carries out the instructions of programs.|The CPU is the main chip of a computer, and it runs all kinds of programs.]"),
    ("a language model|language models|an LLM|a large language model",
     "[A language model is a program which has learned from text to predict the next word.|A language model guesses the next token again and again, and so it writes text.]"),
    ("a neural network|neural networks", "[A neural network is a program made of many simple units with numbers that are learned from examples.|A neural network learns from examples by changing its many numbers, which are called weights.]"),
    ("Apache TVM|TVM|tvm", "[Apache TVM is an open compiler for machine learning. Wherry uses it to build fast code for many devices.|TVM is a compiler which turns a model into fast code for CPUs, GPUs and other devices.]"),
    ("attention|attention in a language model|self-attention", "[Attention lets a model look back at the earlier tokens and pick out those that matter.|With attention, each token looks at the tokens before it and takes what it needs.]"),
    ("a transformer|the transformer", "[A transformer is a neural network that uses attention. Most language models are transformers.]"),
    ("a parameter|the parameters of a model|the weights of a model|a weight", "[The parameters, or weights, are the numbers which a model has learned.|Parameters are the learned numbers in a model. I have about four million of them.]"),
    ("WebGPU|webgpu", "[WebGPU lets web pages use the graphics processor, so that a model can run in the browser.]"),
    ("CUDA|cuda", "[CUDA is the way to program the GPUs of NVIDIA.]"),
    ("Metal|the Metal interface", "[Metal is the interface of Apple for programs on its GPUs.]"),
    ("Vulkan|vulkan", "[Vulkan is an open interface for programs on GPUs of many makers.]"),
    ("a browser|a web browser", "[A browser is a program to look at web pages. Wherry can run a model in it, too.]"),
    ("a kernel|a GPU kernel", "[A kernel is a small program that runs many times in parallel on a device such as a GPU.]"),
    ("memory|RAM", "[Memory is the place where a computer keeps the data that it is working on.]"),
    ("Python|python", "[Python is a programming language which is easy to read. Wherry is mostly written in Python.]"),
    ("open source|open source software", "[Open source means that everybody may read, use and change the code. Wherry is open source under the Apache licence.]"),
    ("a server", "[A server is a computer or a program which answers the requests of others.]"),
    ("a prompt", "[A prompt is the text that you give to a language model.]"),
    ("temperature|sampling temperature|the temperature of a model", "[The temperature says how freely a model picks its words. With a low temperature it takes the most likely ones.]"),
    ("a batch|batching|continuous batching", "[Batching means to work on many requests at the same time. It makes a server faster.]"),
)
OTHERS: tuple[tuple[str, str], ...] = (
    ("[How do I run a model?|How can I start a model?|How do I chat with a model?|How do I use Wherry?|How do I use you?|How do I start?|How can I run you?]",
     "[Type wherry run and the name of a model, for example: wherry run demo.|Use the command wherry run, for example: wherry run demo.]"),
    ("[How do I compile a model?|How can I compile a model?|Which command compiles a model?|How do I build a model for the GPU?]",
     "[Use wherry compile with the model and a target, for example: wherry compile demo --target cpu.|Type wherry compile, the model and the target.]"),
    ("[How do I start a server?|How can I serve a model?|Which command starts the server?|How do I get an API?]", "[Use wherry serve and the model. It starts a server with an OpenAI-compatible API.|Type wherry serve and the name of a model.]"),
    ("[How do I convert a model?|How can I convert the weights?|How do I quantize a model?|Which command converts the weights?]", "[Use wherry convert. It converts and quantizes the weights of a model.|Type wherry convert and the model.]"),
    ("[Which commands does Wherry have?|What commands are there?|List the commands of Wherry.|What can Wherry do?|What are the wherry commands?]", "[The main commands are wherry run, wherry compile, wherry serve, wherry chat and wherry convert.|There are wherry run, wherry compile, wherry convert, wherry chat and wherry serve.]"),
    ("[Where does the name Wherry come from?|Why is it called Wherry?|Why the name Wherry?|What does the name Wherry mean?]", "[A wherry is a light boat that carries people across the water. Wherry carries models to every device.|It is named after a light boat, because it carries models from one place to another.]"),
    ("[Which devices does Wherry support?|Where does Wherry run?|Does Wherry run on phones?|Does Wherry work in the browser?|Can Wherry use a GPU?|On which devices does it run?|Can I run models on my phone?]", "[Wherry runs models on CPUs, GPUs, phones and in browsers.|Yes: Wherry compiles models for CPUs, GPUs, phones and browsers.]"),
    ("[Is Wherry free?|Is Wherry open source?|What is the licence of Wherry?|What does Wherry cost?]", "[Wherry is free and open source, under the Apache licence.|Yes, it is free: the licence is Apache 2.0.]"),
    ("[Why should I quantize a model?|Why use quantization?|What is quantization good for?|Why quantize?]", "[A quantized model needs less memory and often runs faster, with only a small loss of quality.|It makes the model smaller and faster.]"),
    ("[Why do we need a KV cache?|What is a KV cache good for?|Why is there a KV cache?]", "[Without it, the model would have to compute all earlier tokens again for every new one.|It saves work: earlier tokens need not be computed again.]"),
    ("[Why is a GPU faster?|Why do models run on GPUs?|Why use a GPU?|What is the difference between a CPU and a GPU?]", "[A GPU does thousands of simple calculations at the same time, and a CPU only a few.|A CPU does a few things quickly one after the other. A GPU does very many at once.]"),
    ("[How does a language model work?|How do you work?|How do language models write?]", "[A language model reads the text so far and guesses the next token, again and again.|I look at the words so far and guess the next one, over and over.]"),
    ("[What does a compiler do?|Why do we need compilers?|What is a compiler good for?]", "[A compiler turns a program into fast code for a machine.|It translates code into instructions that the machine understands.]"),
    ("[Which compiler does Wherry use?|What is Wherry built on?|What is Wherry based on?|What does Wherry use?]", "[Wherry is built on Apache TVM.|Wherry uses Apache TVM to compile models.]"),
)


def project(rng: Random) -> Exchange:
    """Return one exchange about the project or its technical terms."""
    if rng.random() < 0.3:
        return qa(rng, "project", *rng.choice(OTHERS))
    # The minimum of two random numbers asks most often for the first terms.
    names, reply = TERMS[min(rng.randrange(len(TERMS)), rng.randrange(len(TERMS)))]
    return qa(rng, "project", _ASK, reply, x=rng.choice(names.split("|")))
