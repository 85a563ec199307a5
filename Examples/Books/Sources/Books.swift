// A shelf of books in the terminal. All of its documents are `Codable` values. Start it in two terminals with
// two names.
//
//   hearth serve --ephemeral --emulator
//   Books ann
//
// FIRESTORE_EMULATOR_HOST overrides the server's address, 127.0.0.1:8080.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Terminal

@main
struct Books {
  static let help = """
    add TITLE / AUTHOR / PAGES [/ LANGUAGE]   add a book in english, french or german
    show TITLE                                show one book
    long PAGES                                show the books with more pages, longest first
    rate TITLE / STARS                        rate a book with 1 to 5 stars
    lend TITLE / READER                       lend a book
    return TITLE                              take a book back
    available                                 show the books that nobody has borrowed
    watch                                     show every change, of any terminal, as it happens
    quit                                      leave
    """

  static var user: String { CommandLine.arguments.dropFirst().first ?? "reader" }

  static func main() async {
    let shelf = connect()
    Terminal.say("Books. Type help for the commands.")
    for await line in Terminal.lines() {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard let command = words.first else { continue }
      if command == "quit" { break }
      let arguments = (words.count > 1 ? words[1] : "").split(separator: "/").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      do {
        try await run(command, arguments, on: shelf)
      } catch let error as DecodingError {
        Terminal.say("not a book: \(error)")
      } catch {
        Terminal.say("error: \(error.localizedDescription)")
      }
    }
    Terminal.say("bye")
  }

  static func connect() -> Shelf {
    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = "demo-books"
    FirebaseApp.configure(name: user, options: options)
    guard let app = FirebaseApp.app(name: user) else { preconditionFailure("the app was just configured") }
    let database = Firestore.firestore(app: app)
    let address = ProcessInfo.processInfo.environment["FIRESTORE_EMULATOR_HOST"] ?? "127.0.0.1:8080"
    let parts = address.split(separator: ":")
    database.useEmulator(
      withHost: parts.first.map(String.init) ?? "127.0.0.1", port: parts.last.flatMap { Int($0) } ?? 8080)
    return Shelf(database)
  }

  static func run(_ command: String, _ arguments: [String], on shelf: Shelf) async throws {
    switch (command, arguments.count) {
    case ("add", 3), ("add", 4):
      guard let pages = Int(arguments[2]),
        let language = Book.Language(rawValue: arguments.count == 4 ? arguments[3] : "english")
      else { return Terminal.say(help) }
      let book = Book(
        title: arguments[0], author: Book.Author(name: arguments[1]), language: language, pages: pages)
      try shelf.add(book)
      Terminal.say("added \(book.line)")
    case ("show", 1): show(try await shelf.book(arguments[0]).map { [$0] } ?? [])
    case ("long", 1): show(try await shelf.books(longerThan: Int(arguments[0]) ?? 0))
    case ("rate", 2):
      guard let stars = Int(arguments[1]), (1...5).contains(stars) else { return Terminal.say(help) }
      let rated = try await shelf.rate(arguments[0], Book.Rating(reader: user, stars: stars))
      Terminal.say(rated.map { "rated \($0.line)" } ?? "no such book")
    case ("lend", 2), ("return", 1):
      guard let book = try await shelf.book(arguments[0]) else { return Terminal.say("no such book") }
      try shelf.lend(book, to: arguments.count == 2 ? arguments[1] : nil)
      Terminal.say(arguments.count == 2 ? "lent \(book.title) to \(arguments[1])" : "returned \(book.title)")
    case ("available", 0): show(try await shelf.available())
    case ("watch", 0):
      Task {
        do {
          for try await change in shelf.changes() { Terminal.say(change) }
        } catch {
          Terminal.say("error: \(error.localizedDescription)")
        }
      }
    default: Terminal.say(help)
    }
  }

  static func show(_ books: [Book]) {
    if books.isEmpty { Terminal.say("no such book") }
    for (index, book) in books.enumerated() { Terminal.say("\(index + 1). \(book.line)") }
  }
}
