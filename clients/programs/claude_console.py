"""`claude_console.py PROMPT CLAUDE…`: Claude Code with a console user who answers its questions.

It uses the SDKs' protocol over pipes: without a console, Claude Code has no tool for questions.
"""

import json
import subprocess
import sys

ANSWER = "The second one"


def main(prompt, command):
    command = [*command, "--input-format", "stream-json", "--permission-prompt-tool", "stdio"]
    claude = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(message):
        claude.stdin.write(json.dumps(message) + "\n")
        claude.stdin.flush()

    tell({"type": "control_request", "request_id": "begin", "request": {"subtype": "initialize", "hooks": None}})
    tell({"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None, "session_id": ""})
    for line in claude.stdout:
        sys.stdout.write(line)
        said = json.loads(line)
        if said["type"] == "control_request":
            tell(answered(said))
        if said["type"] == "result":
            claude.stdin.close()
    return claude.wait()


def answered(said):
    """Allows every tool, and answers every question with its second choice."""
    asked = said["request"].get("input") or {}
    answers = {it["question"]: ANSWER for it in asked.get("questions", [])}
    allowed = {"behavior": "allow", "updatedInput": {**asked, "answers": answers} if answers else asked}
    response = {"subtype": "success", "request_id": said["request_id"], "response": allowed}
    return {"type": "control_response", "response": response}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
