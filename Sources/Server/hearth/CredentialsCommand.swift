// The command `hearth credentials` creates, lists and revokes the service accounts of a data directory.

import ArgumentParser
import Foundation
import HearthServer

struct CredentialsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "credentials", abstract: "Create, list and revoke service accounts.",
    discussion: """
      A service account lets a server or an administrator reach a production server. Its JSON file works with Google's \
      libraries, such as the Admin SDKs. The commands work while the server runs and while it is stopped.
      """,
    subcommands: [Create.self, List.self, Revoke.self])

  struct Directory: ParsableArguments {
    @Option(help: ArgumentHelp("The data directory of the server.", valueName: "dir"))
    var data: String
  }

  /// Runs a command and reports its error.
  fileprivate static func report(_ work: () async throws -> Void) async throws {
    do { try await work() } catch let error as HearthError {
      FileHandle.standardError.write(Data("hearth: \(error)\n".utf8))
      throw ExitCode.failure
    }
  }

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create a key of a service account, and the account unless it exists.")

    @OptionGroup var directory: Directory

    @Argument(help: "The account's name: lower-case letters, digits and hyphens.")
    var name: String

    @Option(help: ArgumentHelp("The project in which the account has rights.", valueName: "id"))
    var project = "demo-project"

    @Option(
      help: ArgumentHelp("The account's rights: reader, writer or administrator.", valueName: "role"),
      transform: { text in
        guard let role = Credentials.Role(rawValue: text) else {
          throw ValidationError("'\(text)' is not a role: reader, writer or administrator.")
        }
        return role
      })
    var role = Credentials.Role.administrator

    @Option(
      help: ArgumentHelp(
        "The address of the server's auth port, as clients of the account reach it.", valueName: "url"))
    var url = "http://127.0.0.1:9099"

    @Option(
      help: ArgumentHelp(
        "Write the account to this file, readable by its owner only, in place of standard output.",
        valueName: "file"))
    var output: String?

    func run() async throws {
      try await CredentialsCommand.report {
        let address = url.hasSuffix("/") ? String(url.dropLast()) : url
        let file = try await Credentials(directory: directory.data).create(
          name: name, project: project, role: role, tokenURI: address + "/token")
        guard let output else { return FileHandle.standardOutput.write(Data(file)) }
        let descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
          throw HearthError("\(output) cannot be created: \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: Data(file))
      }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the service accounts and their keys.")

    @OptionGroup var directory: Directory

    func run() async throws {
      try await CredentialsCommand.report {
        for entry in try await Credentials(directory: directory.data).list() {
          print("\(entry.email)\t\(entry.project)\t\(entry.role)\t\(entry.keys.joined(separator: " "))")
        }
      }
    }
  }

  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Revoke a service account, or one of its keys. Its tokens are rejected immediately.")

    @OptionGroup var directory: Directory

    @Argument(help: "The account's address, as the list shows it.")
    var email: String

    @Option(help: ArgumentHelp("Revoke this key only.", valueName: "id"))
    var key: String?

    func run() async throws {
      try await CredentialsCommand.report {
        try await Credentials(directory: directory.data).revoke(email: email, keyID: key)
      }
    }
  }
}
