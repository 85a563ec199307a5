// A list of reminders in the terminal. It also works while the server cannot be reached. Start it in two
// terminals with two names: each shows the changes of the other. Each name has a separate cache.
//
//   hearth serve --ephemeral --emulator
//   Reminders ann
//
// FIRESTORE_EMULATOR_HOST overrides the server's address, 127.0.0.1:8080.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Terminal

@main
struct Reminders {
  static let help = """
    add TITLE    put a reminder on the list
    list         show the list with numbers
    done N       mark number N as done
    delete N     take number N off the list
    watch        show every change, of any terminal, as it happens
    quit         leave
    """

  static func main() async {
    let list = connect()
    Terminal.say("Reminders. Type help for the commands.")
    for await line in Terminal.lines() {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard let command = words.first else { continue }
      if command == "quit" { break }
      do {
        try await run(command, words.count > 1 ? words[1] : "", on: list)
      } catch {
        Terminal.say("error: \(error.localizedDescription)")
      }
    }
    Terminal.say("bye")
  }

  static func connect() -> ReminderList {
    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = "demo-reminders"
    let name = CommandLine.arguments.dropFirst().first ?? "reminders"
    FirebaseApp.configure(name: name, options: options)
    guard let app = FirebaseApp.app(name: name) else { preconditionFailure("the app was just configured") }
    let database = Firestore.firestore(app: app)
    let address = ProcessInfo.processInfo.environment["FIRESTORE_EMULATOR_HOST"] ?? "127.0.0.1:8080"
    let parts = address.split(separator: ":")
    database.useEmulator(
      withHost: parts.first.map(String.init) ?? "127.0.0.1", port: parts.last.flatMap { Int($0) } ?? 8080)
    return ReminderList(database, name: "groceries")
  }

  static func run(_ command: String, _ argument: String, on list: ReminderList) async throws {
    switch command {
    case "add":
      guard !argument.isEmpty else { return Terminal.say("add what?") }
      try list.add(argument)
      Terminal.say("added \(argument)")
    case "list":
      let reminders = try await list.all()
      if reminders.isEmpty { Terminal.say("nothing to do") }
      for (index, reminder) in reminders.enumerated() { Terminal.say("\(index + 1). \(reminder.line)") }
    case "done":
      guard let reminder = try await pick(argument, from: list) else { return }
      list.markDone(reminder)
      Terminal.say("done \(reminder.title)")
    case "delete":
      guard let reminder = try await pick(argument, from: list) else { return }
      list.delete(reminder)
      Terminal.say("deleted \(reminder.title)")
    case "watch":
      Task {
        do {
          for try await change in list.changes() { Terminal.say(change) }
        } catch {
          Terminal.say("error: \(error.localizedDescription)")
        }
      }
    default: Terminal.say(help)
    }
  }

  /// Returns the reminder whose number the user typed.
  static func pick(_ number: String, from list: ReminderList) async throws -> Reminder? {
    let reminders = try await list.all()
    guard let index = Int(number), reminders.indices.contains(index - 1) else {
      Terminal.say("there is no number \(number)")
      return nil
    }
    return reminders[index - 1]
  }
}
