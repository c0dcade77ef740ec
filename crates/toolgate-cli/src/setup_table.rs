//! Settings of clients: `{url}`, `{model}` and `{key}` stand for the gateway, a model and a key.
//!
//! The client lab takes its settings from here, so that these are the ones that were run.

/// Settings of a client.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// The client and the API that it uses.
    pub(crate) about: &'static str,
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Files in the home folder, with their contents.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Code that makes a client, for libraries.
    pub(crate) code: &'static str,
    /// Command that starts the program.
    pub(crate) command: &'static str,
}

const NONE: Setup =
    Setup { name: "", about: "", variables: &[], files: &[], code: "", command: "" };

/// Known clients. Variants of a client differ in the API.
pub(crate) const CLIENTS: &[Setup] = &[
    Setup {
        name: "claude-code",
        about: "Claude Code, Messages (`toolgate run claude` does more)",
        variables: &[
            ("ANTHROPIC_BASE_URL", "{url}"),
            ("ANTHROPIC_AUTH_TOKEN", "{key}"),
            ("ANTHROPIC_MODEL", "'{model}[1m]'"),
        ],
        command: "claude",
        ..NONE
    },
    Setup {
        name: "codex",
        about: "Codex, Responses (`toolgate run codex` adds a model catalogue)",
        variables: &[("TOOLGATE_CLIENT_KEY", "{key}")],
        files: &[(
            "~/.codex/config.toml",
            "model = \"{model}\"\nmodel_provider = \"toolgate\"\nmodel_context_window = 1000000\nmodel_providers.toolgate = { name = \"toolgate\", base_url = \"{url}/v1\", env_key = \"TOOLGATE_CLIENT_KEY\" }\n",
        )],
        command: "codex",
        ..NONE
    },
    Setup {
        name: "gemini-cli",
        about: "Gemini CLI, Gemini API",
        variables: &[("GOOGLE_GEMINI_BASE_URL", "{url}"), ("GEMINI_API_KEY", "{key}")],
        files: &[(
            "~/.gemini/settings.json",
            "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}\n",
        )],
        command: "gemini -m {model}",
        ..NONE
    },
    Setup {
        name: "opencode",
        about: "opencode, Messages",
        files: &[("~/.config/opencode/opencode.json", OPENCODE_ANTHROPIC)],
        command: "opencode -m toolgate/{model}",
        ..NONE
    },
    Setup {
        name: "opencode-responses",
        about: "opencode, Responses",
        files: &[("~/.config/opencode/opencode.json", OPENCODE_RESPONSES)],
        command: "opencode -m toolgate/{model}",
        ..NONE
    },
    Setup {
        name: "opencode-chat",
        about: "opencode, Chat Completions",
        files: &[("~/.config/opencode/opencode.json", OPENCODE_CHAT)],
        command: "opencode -m toolgate/{model}",
        ..NONE
    },
    Setup {
        name: "opencode-gemini",
        about: "opencode, Gemini API",
        files: &[("~/.config/opencode/opencode.json", OPENCODE_GEMINI)],
        command: "opencode -m toolgate/{model}",
        ..NONE
    },
    Setup {
        name: "qwen-code",
        about: "Qwen Code, Chat Completions",
        variables: &[
            ("OPENAI_BASE_URL", "{url}/v1"),
            ("OPENAI_API_KEY", "{key}"),
            ("OPENAI_MODEL", "{model}"),
        ],
        command: "qwen --auth-type openai",
        ..NONE
    },
    Setup {
        name: "qwen-code-messages",
        about: "Qwen Code, Messages",
        variables: &[
            ("ANTHROPIC_BASE_URL", "{url}"),
            ("ANTHROPIC_API_KEY", "{key}"),
            ("ANTHROPIC_MODEL", "{model}"),
        ],
        command: "qwen --auth-type anthropic",
        ..NONE
    },
    Setup {
        name: "qwen-code-gemini",
        about: "Qwen Code, Gemini API",
        variables: &[
            ("GOOGLE_GEMINI_BASE_URL", "{url}"),
            ("GEMINI_API_KEY", "{key}"),
            ("GEMINI_MODEL", "{model}"),
        ],
        command: "qwen --auth-type gemini",
        ..NONE
    },
    Setup {
        name: "pi",
        about: "pi, Messages",
        files: &[("~/.pi/agent/models.json", PI_ANTHROPIC)],
        command: "pi --provider toolgate --model {model}",
        ..NONE
    },
    Setup {
        name: "pi-responses",
        about: "pi, Responses",
        files: &[("~/.pi/agent/models.json", PI_RESPONSES)],
        command: "pi --provider toolgate --model {model}",
        ..NONE
    },
    Setup {
        name: "pi-chat",
        about: "pi, Chat Completions",
        files: &[("~/.pi/agent/models.json", PI_CHAT)],
        command: "pi --provider toolgate --model {model}",
        ..NONE
    },
    Setup {
        name: "pi-gemini",
        about: "pi, Gemini API",
        files: &[("~/.pi/agent/models.json", PI_GEMINI)],
        command: "pi --provider toolgate --model {model}",
        ..NONE
    },
    Setup {
        name: "continue",
        about: "Continue, Chat Completions",
        files: &[(
            "~/.continue/config.yaml",
            "name: toolgate\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: {model}\n    provider: openai\n    model: {model}\n    apiBase: {url}/v1\n    apiKey: {key}\n    roles: [chat, edit, apply]\n    capabilities: [tool_use, image_input]\n",
        )],
        command: "cn --config ~/.continue/config.yaml",
        ..NONE
    },
    Setup {
        name: "continue-messages",
        about: "Continue, Messages",
        files: &[(
            "~/.continue/config.yaml",
            "name: toolgate\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: {model}\n    provider: anthropic\n    model: {model}\n    apiBase: {url}/v1/\n    apiKey: {key}\n    roles: [chat, edit, apply]\n    capabilities: [tool_use, image_input]\n",
        )],
        command: "cn --config ~/.continue/config.yaml",
        ..NONE
    },
    Setup {
        name: "droid",
        about: "Factory droid, Messages",
        files: &[(
            "~/.factory/settings.json",
            "{\"customModels\": [{\"model\": \"{model}\", \"displayName\": \"toolgate\", \"baseUrl\": \"{url}\", \"apiKey\": \"{key}\", \"provider\": \"anthropic\", \"maxOutputTokens\": 32000}]}\n",
        )],
        command: "droid",
        ..NONE
    },
    Setup {
        name: "aider",
        about: "aider, Chat Completions",
        variables: &[("OPENAI_API_BASE", "{url}/v1"), ("OPENAI_API_KEY", "{key}")],
        command: "aider --model openai/{model}",
        ..NONE
    },
    Setup {
        name: "aider-messages",
        about: "aider, Messages",
        variables: &[("ANTHROPIC_API_BASE", "{url}"), ("ANTHROPIC_API_KEY", "{key}")],
        command: "aider --model anthropic/{model}",
        ..NONE
    },
    Setup {
        name: "llm",
        about: "llm, Chat Completions",
        variables: &[("OPENAI_API_KEY", "{key}")],
        files: &[(
            "~/.config/io.datasette.llm/extra-openai-models.yaml",
            "- model_id: toolgate\n  model_name: {model}\n  api_base: {url}/v1\n  supports_tools: true\n  supports_schema: true\n",
        )],
        command: "llm -m toolgate",
        ..NONE
    },
    Setup {
        name: "anthropic",
        about: "Anthropic's SDKs (Python, JavaScript) and programs on them, Messages",
        variables: &[("ANTHROPIC_BASE_URL", "{url}"), ("ANTHROPIC_API_KEY", "{key}")],
        ..NONE
    },
    Setup {
        name: "openai",
        about: "OpenAI's SDKs and Agents SDKs (Python, JavaScript), Responses and Chat Completions",
        variables: &[("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_API_KEY", "{key}")],
        ..NONE
    },
    Setup {
        name: "google-genai",
        about: "Google's SDKs (Python, JavaScript) and the ADK, Gemini API",
        variables: &[("GOOGLE_GEMINI_BASE_URL", "{url}"), ("GEMINI_API_KEY", "{key}")],
        ..NONE
    },
    Setup {
        name: "vercel-ai",
        about: "Vercel ai with @ai-sdk/anthropic, Messages",
        code: "import { createAnthropic } from \"@ai-sdk/anthropic\";\nconst model = createAnthropic({ baseURL: \"{url}/v1\", apiKey: \"{key}\" })(\"{model}\");",
        ..NONE
    },
    Setup {
        name: "langchain",
        about: "langchain-anthropic, Messages",
        code: "from langchain_anthropic import ChatAnthropic\nmodel = ChatAnthropic(model=\"{model}\", base_url=\"{url}\", api_key=\"{key}\")",
        ..NONE
    },
    Setup {
        name: "litellm",
        about: "litellm, Messages",
        code: "import litellm\nanswer = litellm.completion(model=\"anthropic/{model}\", api_base=\"{url}\", api_key=\"{key}\",\n    messages=[{\"role\": \"user\", \"content\": \"Hello\"}])",
        ..NONE
    },
    Setup {
        name: "pydantic-ai",
        about: "pydantic-ai, Responses; with the SDKs' variables also the other APIs",
        code: "from pydantic_ai import Agent\nfrom pydantic_ai.models.openai import OpenAIResponsesModel\nfrom pydantic_ai.providers.openai import OpenAIProvider\nprovider = OpenAIProvider(base_url=\"{url}/v1\", api_key=\"{key}\")\nagent = Agent(OpenAIResponsesModel(\"{model}\", provider=provider))",
        ..NONE
    },
];

macro_rules! opencode {
    ($package:literal, $path:literal) => {
        concat!(
            "{\"provider\": {\"toolgate\": {\"npm\": \"",
            $package,
            "\", \"options\": {\"baseURL\": \"{url}",
            $path,
            "\", \"apiKey\": \"{key}\"}, \"models\": {\"{model}\": {\"tool_call\": true, \"reasoning\": true, \"modalities\": {\"input\": [\"text\", \"image\", \"pdf\"], \"output\": [\"text\"]}, \"limit\": {\"context\": 1000000, \"output\": 32000}}}}}}\n"
        )
    };
}
const OPENCODE_ANTHROPIC: &str = opencode!("@ai-sdk/anthropic", "/v1");
const OPENCODE_RESPONSES: &str = opencode!("@ai-sdk/openai", "/v1");
const OPENCODE_CHAT: &str = opencode!("@ai-sdk/openai-compatible", "/v1");
const OPENCODE_GEMINI: &str = opencode!("@ai-sdk/google", "/v1beta");

macro_rules! pi {
    ($api:literal, $path:literal) => {
        concat!(
            "{\"providers\": {\"toolgate\": {\"baseUrl\": \"{url}",
            $path,
            "\", \"apiKey\": \"{key}\", \"api\": \"",
            $api,
            "\", \"models\": [{\"id\": \"{model}\", \"name\": \"{model}\", \"reasoning\": true, \"input\": [\"text\", \"image\"], \"cost\": {\"input\": 0, \"output\": 0, \"cacheRead\": 0, \"cacheWrite\": 0}, \"contextWindow\": 1000000, \"maxTokens\": 32000}]}}}\n"
        )
    };
}
const PI_ANTHROPIC: &str = pi!("anthropic-messages", "");
const PI_RESPONSES: &str = pi!("openai-responses", "/v1");
const PI_CHAT: &str = pi!("openai-completions", "/v1");
const PI_GEMINI: &str = pi!("google-generative-ai", "/v1beta");
