// Posts a form and reads the answer as server-sent events.

/**
 * Calls `on(name, data)` for each event, and resolves with the data of `finished`.
 * Rejects with {code, error, status, ...}; `connection_lost` where neither came.
 */
export async function post(url, form, on, signal) {
  let response;
  try {
    response = await fetch(url, { method: "POST", body: form, signal });
  } catch (error) {
    throw error.name === "AbortError" ? { code: "stopped" } : { code: "connection_lost" };
  }
  if (response.redirected) throw { code: "signed_out" };
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read().catch((error) => {
      throw { code: error.name === "AbortError" ? "stopped" : "connection_lost" };
    });
    if (done) throw { code: "connection_lost" };
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const found = message.match(/^event: (.*)\ndata: (.*)$/);
      if (!found) continue; // a heartbeat
      const data = JSON.parse(found[2]);
      if (found[1] === "error") throw data;
      if (found[1] === "finished") return data;
      on(found[1], data);
    }
  }
}

async function refusal(response) {
  if (response.headers.get("Content-Type")?.startsWith("application/json")) return response.json();
  const codes = { 403: "forbidden", 404: "conversation_does_not_exist", 413: "too_large" };
  return { code: codes[response.status] ?? "internal_error", status: response.status };
}
