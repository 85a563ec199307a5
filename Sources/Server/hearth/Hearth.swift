// The command `hearth`; each of its commands has a file of its own.

import ArgumentParser

@main
struct Hearth: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hearth",
    abstract: "Firebase's two databases as your own server.",
    subcommands: [Serve.self, Check.self])
}
