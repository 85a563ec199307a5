// A blog for several people in the terminal, with stars, live comments and presence. Start it in two terminals:
//
//   hearth serve --ephemeral --emulator
//   SocialBlog ann
//   SocialBlog bob
//
// Posts that are written offline survive the end of the program and are sent after the next start. Commands
// that wait for the server run in the background, so that the program accepts other commands. `quit` waits up
// to five seconds for them. FIREBASE_DATABASE_EMULATOR_HOST overrides the server's address, 127.0.0.1:9000.
// `--offline` starts without a connection.

import FirebaseCore
import FirebaseDatabase
import Foundation
import Terminal

@main
struct SocialBlog {
  static let help = """
    post TEXT       publish a post
    posts           show the posts with numbers
    star N          star post number N, or remove the star
    read N          show the comments on post number N, also later ones
    comment N TEXT  comment on post number N
    offline         disconnect
    online          connect again
    quit            leave
    """

  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    guard let name = arguments.first, !name.hasPrefix("-") else {
      return Terminal.say("usage: SocialBlog NAME [--offline]")
    }
    let database = connect()
    if arguments.contains("--offline") { database.goOffline() }
    let blog = Blog(database, author: name)
    Terminal.say("SocialBlog. Type help for the commands.")
    show(blog)
    var commands: [Task<Void, Never>] = []
    for await line in Terminal.lines() {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard let command = words.first else { continue }
      if command == "quit" { break }
      if let task = run(command, words.count > 1 ? words[1] : "", on: blog) { commands.append(task) }
    }
    await finish(commands)
    // Closes the connection after the cache has stored every post.
    _ = await FirebaseApp.app()?.delete()
    Terminal.say("bye")
  }

  /// Waits up to five seconds for running commands. Without a connection, starring a post never ends.
  static func finish(_ commands: [Task<Void, Never>]) async {
    let (running, end) = AsyncStream<Void>.makeStream()
    Task {
      for command in commands { await command.value }
      end.finish()
    }
    Task {
      try? await Task.sleep(for: .seconds(5))
      end.finish()
    }
    for await _ in running {}
  }

  static func connect() -> Database {
    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = "demo-blog"
    FirebaseApp.configure(options: options)
    let database = Database.database()
    let address = ProcessInfo.processInfo.environment["FIREBASE_DATABASE_EMULATOR_HOST"] ?? "127.0.0.1:9000"
    let parts = address.split(separator: ":")
    database.useEmulator(
      withHost: parts.first.map(String.init) ?? "127.0.0.1", port: parts.last.flatMap { Int($0) } ?? 9_000)
    database.isPersistenceEnabled = true
    database.persistenceErrorHandler = { error in
      let isInUse = (error as NSError).code == CachePersistenceError.inUse.rawValue
      Terminal.say(
        isInUse ? "Another program uses the cache. Unsent posts are lost when this program ends." : "\(error)"
      )
    }
    return database
  }

  /// Shows posts and people when they change.
  static func show(_ blog: Blog) {
    follow(blog.posts, .childAdded) { "+ \(Post($0).line)" }
    follow(blog.posts, .childChanged) { "~ \(Post($0).line)" }
    follow(blog.people, .childAdded) { "* \($0.key) is here" }
    follow(blog.people, .childRemoved) { "* \($0.key) left" }
    inBackground { try await blog.announcePresence() }
  }

  /// Prints a line for each event of a query.
  static func follow(
    _ query: DatabaseQuery, _ type: DataEventType, _ line: @escaping @Sendable (DataSnapshot) -> String
  ) {
    inBackground {
      for try await snapshot in query.values(of: type) { Terminal.say(line(snapshot)) }
    }
  }

  @discardableResult
  static func inBackground(_ work: @escaping @Sendable () async throws -> Void) -> Task<Void, Never> {
    Task {
      do {
        try await work()
      } catch {
        Terminal.say("error: \(error.localizedDescription)")
      }
    }
  }

  /// Executes a command.
  ///
  /// - Returns: the task that waits for the server; nil if the command does not wait.
  static func run(_ command: String, _ argument: String, on blog: Blog) -> Task<Void, Never>? {
    switch command {
    case "post":
      if argument.isEmpty { Terminal.say("post what?") } else { blog.publish(argument) }
    case "posts":
      return inBackground {
        for (index, post) in await blog.latestPosts().enumerated() {
          Terminal.say("\(index + 1). \(post.line)")
        }
      }
    case "star":
      return withPost(argument, of: blog) { try await blog.toggleStar(of: $0) }
    case "read":
      return withPost(argument, of: blog) { post in
        follow(blog.comments(on: post), .childAdded) { comment in
          let author = comment.childSnapshot(forPath: "author").value as? String ?? "?"
          return "# \(author): \(comment.childSnapshot(forPath: "text").value as? String ?? "")"
        }
      }
    case "comment":
      let words = argument.split(separator: " ", maxSplits: 1).map(String.init)
      guard words.count == 2 else { return run("help", "", on: blog) }
      return withPost(words[0], of: blog) { blog.comment(words[1], on: $0) }
    case "offline": blog.database.goOffline()
    case "online": blog.database.goOnline()
    default: Terminal.say(help)
    }
    return nil
  }

  /// Finds the post whose number the user typed, and passes it to a closure.
  static func withPost(
    _ number: String, of blog: Blog, _ use: @escaping @Sendable (Post) async throws -> Void
  ) -> Task<Void, Never> {
    inBackground {
      let posts = await blog.latestPosts()
      guard let index = Int(number), posts.indices.contains(index - 1) else {
        return Terminal.say("there is no number \(number)")
      }
      try await use(posts[index - 1])
    }
  }
}
