// The command `hearth`. Each subcommand has its own file.

import ArgumentParser

@main
struct Hearth: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hearth",
    abstract: "Firebase's two databases as your own server.",
    subcommands: [Serve.self, Check.self, CredentialsCommand.self, RulesCommand.self])
}
