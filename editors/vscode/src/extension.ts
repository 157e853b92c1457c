// Frostline in VS Code: the parts, joined.

import * as vscode from "vscode";
import { type LanguageClient, type Middleware } from "vscode-languageclient/node";

import { type Action, register } from "./commands";
import { Diff } from "./diff";
import { Drafts } from "./drafts";
import { Draw } from "./draw";
import { Ghost } from "./ghost";
import { Lenses } from "./lens";
import { PROVISIONAL, type Provisional, STATE, type StateTold } from "./protocol";
import { Server } from "./server";
import { serves } from "./settings";
import { Status } from "./status";

const SAY_MS = 8000;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const output = vscode.window.createOutputChannel("Frostline", { log: true });
  // What went wrong is one line in the status bar for a while, and in the output: never a message box.
  const say = (sentence: string): void => {
    output.info(sentence);
    vscode.window.setStatusBarMessage(`Frostline: ${sentence}`, SAY_MS);
  };
  const ghost = new Ghost();
  const middleware: Middleware = {
    provideInlineCompletionItems: (document, position, call, token, next) =>
      ghost.provide(document, position, call, token, next),
    provideCodeActions: async (document, range, call, token, next) =>
      (await next(document, range, call, token))?.map(asLive),
  };
  const listen = (client: LanguageClient): void => {
    client.onNotification(PROVISIONAL, (told: Provisional) => drafts.provisional(told));
    client.onNotification(STATE, (told: StateTold) => drafts.state(told));
  };
  const server = new Server(context, output, middleware, listen, say);
  const drafts = new Drafts(server, say);
  const diff = new Diff(drafts, server);
  server.onDidEnd(() => ghost.clear());
  const parts = [output, ghost, server, drafts, diff, new Draw(drafts), new Lenses(drafts), new Status(server, drafts)];
  context.subscriptions.push(
    ...parts,
    register({ context, server, drafts, diff, output, say }),
    vscode.window.onDidChangeActiveTextEditor(served),
    // Also a document that is given another language: VS Code closes it and opens it again.
    vscode.workspace.onDidOpenTextDocument(served),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("frostline")) {
        const restart = ["command", "languages"].some((name) => event.affectsConfiguration(`frostline.${name}`));
        served();
        void server.apply({ restart });
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.apply({ restart: false })),
  );
  served();
  await server.apply({ restart: false });
}

function served(): void {
  const editor = vscode.window.activeTextEditor;
  const serving = editor !== undefined && serves(editor.document);
  void vscode.commands.executeCommand("setContext", "frostline.serves", serving);
}

/** Return a code action of the server's that begins a live draft, instead of waiting for one edit. */
function asLive(action: vscode.Command | vscode.CodeAction): vscode.Command | vscode.CodeAction {
  const data = (action as { readonly data?: Action }).data;
  if (!(action instanceof vscode.CodeAction) || data?.uri === undefined) {
    return action;
  }
  const live = new vscode.CodeAction(action.title, action.kind);
  live.command = { title: action.title, command: "frostline.act", arguments: [data] };
  return live;
}
