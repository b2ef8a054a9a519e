/** Requests to the server: its answers, or its errors in its own wording. */

/** An error answer of the server. */
export class Refusal extends Error {
  /** @param {string} code @param {string} message @param {number} status */
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The API client: a server and the token for it. */
export class Api {
  /** @param {string} token */
  constructor(token) {
    this.token = token;
  }

  /**
   * @param {string} path
   * @param {Record<string, string | number | undefined>} [query]
   * @returns {Promise<any>}
   */
  async get(path, query = {}) {
    return this.#data(await this.#send(address(path, query), {}));
  }

  /** @param {string} path @param {object} body @returns {Promise<any>} */
  async post(path, body) {
    const headers = { "Content-Type": "application/json" };
    return this.#data(await this.#send(path, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  /** Fetch a file unmodified. @param {string} path @returns {Promise<Blob>} */
  async file(path) {
    const answer = await this.#send(path, {});
    if (!answer.ok) throw await refusal(answer);
    return answer.blob();
  }

  /** @param {string} path @param {RequestInit} more */
  async #send(path, more) {
    const headers = { ...more.headers, Authorization: `Bearer ${this.token}` };
    try {
      return await fetch(path, { ...more, headers, cache: "no-store", credentials: "omit" });
    } catch {
      throw new Refusal("unreachable", "The server does not answer.", 0);
    }
  }

  /** @param {Response} answer @returns {Promise<any>} */
  async #data(answer) {
    if (!answer.ok) throw await refusal(answer);
    return (await answer.json()).data;
  }
}

/** @param {Response} answer */
export async function refusal(answer) {
  try {
    const { error } = await answer.json();
    return new Refusal(String(error.code), String(error.message), answer.status);
  } catch {
    return new Refusal("unclear", `The server answered ${answer.status}.`, answer.status);
  }
}

/** @param {string} path @param {Record<string, string | number | undefined>} query */
export function address(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const asked = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length ? `${path}?${asked}` : path;
}
