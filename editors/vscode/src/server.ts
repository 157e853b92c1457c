// The server's process: started, restarted after a crash, told of settings. It knows no draft.

import { homedir } from "node:os";
import * as vscode from "vscode";
import { ShowMessageNotification, type StaticFeature } from "vscode-languageclient";
import {
  CloseAction,
  type DynamicFeature,
  ErrorAction,
  LanguageClient,
  type Middleware,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";

import { Missing, serverCommand } from "./install";
import { STATUS, type StatusTold, VERSION } from "./protocol";
import { forServer, settings } from "./settings";

/** How the process is. What the model's worker does is in `status`. */
export type Life = "off" | "missing" | "starting" | "running" | "lost";

const RESTARTS = 5;
const WITHIN_MS = 3 * 60_000;
const PAUSE_MS = 1000;

/** A client that never opens a message or takes the focus: what it has to say is in the output. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  override warn(message: string, data?: unknown): void {
    super.warn(message, data, false);
  }

  override info(message: string, data?: unknown): void {
    super.info(message, data, false);
  }

  // The server's commands and code lenses are for clients that cannot draw a draft.
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : "";
    if (method !== "workspace/executeCommand" && method !== "textDocument/codeLens") {
      super.registerFeature(feature);
    }
  }

  override fillInitializeParams(params: Parameters<LanguageClient["fillInitializeParams"]>[0]): void {
    super.fillInitializeParams(params);
    params.capabilities.experimental = { frostline: { version: VERSION } };
  }
}

export class Server implements vscode.Disposable {
  life: Life = "off";
  /** Why it is missing or lost. */
  reason = "";
  status: StatusTold = { worker: "off" };

  private client: QuietClient | undefined;
  private crashes: number[] = [];
  private steps: Promise<void> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly ended = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  /** The process is gone, and every session with it. */
  readonly onDidEnd = this.ended.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly output: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
    private readonly listen: (client: LanguageClient) => void,
    private readonly say: (sentence: string) => void,
  ) {}

  /** Bring the process to what the settings say. Calls wait for each other. */
  apply(options: { restart: boolean }): Promise<void> {
    this.steps = this.steps.then(async () => {
      if (!settings.enabled() || options.restart) {
        await this.stop();
      }
      if (settings.enabled() && this.client === undefined) {
        await this.start();
      } else if (settings.enabled()) {
        await this.client?.sendNotification("workspace/didChangeConfiguration", { settings: forServer() });
      }
    });
    return this.steps;
  }

  async request<T>(method: string, params: unknown): Promise<T> {
    if (this.client === undefined || this.life !== "running") {
      throw new Missing(this.reason || "Frostline is off.");
    }
    return this.client.sendRequest<T>(method, params);
  }

  notify(method: string, params: unknown): void {
    void this.client?.sendNotification(method, params);
  }

  /** Return the feature that serves virtual documents, where there is one. */
  feature<T>(method: string): T | undefined {
    return this.client?.getFeature(method as never) as T | undefined;
  }

  async command(name: string): Promise<void> {
    await this.request("workspace/executeCommand", { command: name, arguments: [] });
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
    this.ended.dispose();
  }

  private async start(): Promise<void> {
    let command: readonly string[];
    try {
      command = serverCommand(this.context);
    } catch (error) {
      this.output.warn(String(error));
      this.become("missing", error instanceof Missing ? error.message : String(error));
      return;
    }
    const [file = "", ...args] = command;
    this.output.info(`starting ${command.join(" ")}`);
    this.crashes = [];
    this.become("starting");
    const client = new QuietClient(
      "frostline",
      "Frostline",
      // From the home folder: nothing of a workspace may be imported or run by starting there.
      { command: file, args, options: { cwd: homedir() } },
      {
        documentSelector: settings.languages().flatMap((language) => [
          { scheme: "file", language },
          { scheme: "untitled", language },
        ]),
        outputChannel: this.output,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: forServer,
        middleware: this.middleware,
        initializationFailedHandler: () => false,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => this.crashed(),
        },
      },
    );
    this.client = client;
    client.onDidChangeState(({ newState }) => newState === State.Running && this.running(client));
    client.onNotification(STATUS, (told: StatusTold) => this.told(told));
    client.onNotification(ShowMessageNotification.type, ({ message }) => this.say(message));
    this.listen(client);
    try {
      await client.start();
    } catch (error) {
      this.output.error(String(error));
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      this.ended.fire();
      await client.dispose(2000).catch((error: unknown) => this.output.warn(String(error)));
    }
    this.status = { worker: "off" };
    this.become("off");
  }

  private running(client: QuietClient): void {
    if (this.client !== client) {
      return;
    }
    const offered = client.initializeResult?.capabilities.experimental as
      | { frostline?: { version?: number } }
      | undefined;
    if (offered?.frostline?.version !== VERSION) {
      this.client = undefined;
      void client.dispose();
      this.become("missing", "The server and this extension are of different versions. Update both.");
      return;
    }
    this.become("running");
    void client.sendRequest<StatusTold>(STATUS, {}).then(
      (told) => this.told(told),
      () => undefined,
    );
  }

  private told(told: StatusTold): void {
    this.status = told;
    this.changed.fire();
  }

  private async crashed(): Promise<{ action: CloseAction; handled: boolean }> {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((time) => now - time < WITHIN_MS), now];
    this.status = { worker: "off" };
    this.ended.fire();
    this.become("lost", "The Frostline server ended. Its output says why.");
    const again = this.crashes.length <= RESTARTS;
    if (again) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } else {
      this.client = undefined;
    }
    return { action: again ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
  }

  private become(life: Life, reason = ""): void {
    this.life = life;
    this.reason = reason;
    this.changed.fire();
  }
}
