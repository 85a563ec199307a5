// The blog's data:
//
//   posts/ID               author, text, time, starCount, stars/NAME
//   user-posts/NAME/ID     true
//   comments/ID/COMMENT    author, text
//   people/NAME            true while that person is connected

import FirebaseDatabase
import Foundation
import Terminal

/// A post.
struct Post {
  let id: String
  let author: String
  let text: String
  let starCount: Int

  init(_ snapshot: DataSnapshot) {
    id = snapshot.key
    author = snapshot.childSnapshot(forPath: "author").value as? String ?? "?"
    text = snapshot.childSnapshot(forPath: "text").value as? String ?? ""
    starCount = snapshot.childSnapshot(forPath: "starCount").value as? Int ?? 0
  }

  /// A description of the post on one line.
  var line: String {
    let stars = starCount == 0 ? "" : " (\(starCount) \(starCount == 1 ? "star" : "stars"))"
    return "\(author): \(text)\(stars)"
  }
}

/// The blog, for one of its authors.
struct Blog: Sendable {
  let database: Database
  let author: String

  private var root: DatabaseReference { database.reference() }

  init(_ database: Database, author: String) {
    self.database = database
    self.author = author
  }

  /// The latest posts in the order in which they were published.
  var posts: DatabaseQuery { root.child("posts").queryLimited(toLast: 20) }

  /// The people who are connected.
  var people: DatabaseReference { root.child("people") }

  func comments(on post: Post) -> DatabaseReference { root.child("comments").child(post.id) }

  /// The latest posts. The observers of the posts keep them in the cache, so this also works offline.
  func latestPosts() async -> [Post] {
    let (snapshot, _) = await posts.observeSingleEventAndPreviousSiblingKey(of: .value)
    return snapshot.children.allObjects.compactMap { ($0 as? DataSnapshot).map(Post.init) }
  }

  /// Publishes a post at both of its locations atomically. It is visible at once. It is sent when there is a
  /// connection, if necessary by a later run of the program.
  func publish(_ text: String) {
    let post: [String: Any] = [
      "author": author, "text": text, "time": ServerValue.timestamp(), "starCount": 0,
    ]
    guard let id = root.child("posts").childByAutoId().key else { return }
    root.updateChildValues(["posts/\(id)": post, "user-posts/\(author)/\(id)": true]) { error, _ in
      Terminal.say(error.map { "error: \($0.localizedDescription)" } ?? "sent: \(text)")
    }
  }

  /// Comments on a post.
  func comment(_ text: String, on post: Post) {
    comments(on: post).childByAutoId().setValue(["author": author, "text": text]) { error, _ in
      if let error { Terminal.say("error: \(error.localizedDescription)") }
    }
  }

  /// Stars a post, or removes the star. The transaction keeps the count correct when several people star the
  /// post at the same time.
  func toggleStar(of post: Post) async throws {
    let author = author
    try await root.child("posts").child(post.id).runTransactionBlock { data in
      guard var post = data.value as? [String: Any] else { return .success(withValue: data) }
      var stars = post["stars"] as? [String: Bool] ?? [:]
      stars[author] = stars[author] == nil ? true : nil
      post["stars"] = stars
      post["starCount"] = stars.count
      data.value = post
      return .success(withValue: data)
    }
  }

  /// Adds this author to the connected people after each connection. The server removes the entry when the
  /// connection is lost.
  func announcePresence() async throws {
    let entry = people.child(author)
    for try await state in database.reference(withPath: ".info/connected").values()
    where state.value as? Bool == true {
      try await entry.onDisconnectRemoveValue()
      try await entry.setValue(true)
    }
  }
}
