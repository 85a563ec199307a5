// swift-format-ignore-file

// Code of Firebase's Realtime Database guides, unchanged. The file compiles only if the SDK is
// source-compatible. EndToEndTests checks that the code works as the guides describe.

import Dispatch
import FirebaseCore
import FirebaseDatabase
import Foundation
import HearthServer
import Testing

struct User { var username: String }

class PostController {
  var ref: DatabaseReference!
  var refHandle: DatabaseHandle!
  var postRef: DatabaseReference!

  init(database: Database) {
    ref = database.reference()
    postRef = ref.child("posts").child("post-1")
  }

  func write(uid: String, username: String) {
    self.ref.child("users").child(uid).setValue(["username": username])
    self.ref.child("users/\(uid)/username").setValue(username)
  }

  func listen(_ seen: @escaping (Bool, Any?) -> Void) {
    refHandle = postRef.observe(
      DataEventType.value,
      with: { snapshot in
        seen(snapshot.exists(), snapshot.value)
      })
  }

  func readOnce(uid: String, _ result: @escaping @Sendable (String) -> Void) {
    ref.child("users/\(uid)/username").getData(completion: { error, snapshot in
      guard error == nil else {
        print(error!.localizedDescription)
        return;
      }
      let userName = snapshot?.value as? String ?? "Unknown";
      result(userName)
    });
  }

  func readOnceWithObserver(userID: String?, _ result: @escaping (User) -> Void) {
    ref.child("users").child(userID!).observeSingleEvent(
      of: .value,
      with: { snapshot in
        // Get user value
        let value = snapshot.value as? NSDictionary
        let username = value?["username"] as? String ?? ""
        let user = User(username: username)
        result(user)
      }
    ) { error in
      print(error.localizedDescription)
    }
  }

  func fanOut(userID: String, username: String, title: String, body: String) {
    guard let key = ref.child("posts").childByAutoId().key else { return }
    let post = [
      "uid": userID,
      "author": username,
      "title": title,
      "body": body,
    ]
    let childUpdates = [
      "/posts/\(key)": post,
      "/user-posts/\(userID)/\(key)/": post,
    ]
    ref.updateChildValues(childUpdates)
  }

  func writeWithCompletion(uid: String, username: String, _ done: @escaping @Sendable (String) -> Void) {
    ref.child("users").child(uid).setValue(["username": username]) {
      (error: Error?, ref: DatabaseReference) in
      if let error = error {
        done("Data could not be saved: \(error).")
      } else {
        done("Data saved successfully!")
      }
    }
  }

  func remove(uid: String) {
    ref.child("users").child(uid).removeValue()
    ref.child("users").child(uid).setValue(nil)
    ref.updateChildValues(["users/\(uid)": NSNull()])
  }

  func stop() {
    postRef.removeObserver(withHandle: refHandle)
    postRef.removeAllObservers()
  }
}

func toggleStar(ref: DatabaseReference, uid: String?, _ done: @escaping @Sendable (Bool) -> Void) {
  ref.runTransactionBlock({ (currentData: MutableData) -> TransactionResult in
    if var post = currentData.value as? [String: AnyObject],
      let uid = uid
    {
      var stars: [String: Bool]
      stars = post["stars"] as? [String: Bool] ?? [:]
      var starCount = post["starCount"] as? Int ?? 0
      if let _ = stars[uid] {
        // Unstar the post and remove self from stars
        starCount -= 1
        stars.removeValue(forKey: uid)
      } else {
        // Star the post and add self to stars
        starCount += 1
        stars[uid] = true
      }
      post["starCount"] = starCount as AnyObject?
      post["stars"] = stars as AnyObject?

      // Set value and report transaction success
      currentData.value = post

      return TransactionResult.success(withValue: currentData)
    }
    return TransactionResult.success(withValue: currentData)
  }) { error, committed, snapshot in
    if let error = error {
      print(error.localizedDescription)
    }
    done(committed)
  }
}

func increments(database: Database, postID: String, userID: String) {
  let updates =
    [
      "posts/\(postID)/stars/\(userID)": true,
      "posts/\(postID)/starCount": ServerValue.increment(1),
      "user-posts/\(postID)/stars/\(userID)": true,
      "user-posts/\(postID)/starCount": ServerValue.increment(1),
    ] as [String: Any]
  database.reference().updateChildValues(updates);
}

class CommentsController {
  var ref: DatabaseReference!
  var commentsRef: DatabaseReference!
  var comments: [DataSnapshot] = []
  let kSectionComments = 1
  var log: (String) -> Void = { _ in }
  func getUid() -> String { "user-1" }

  func indexOfMessage(_ snapshot: DataSnapshot) -> Int {
    var index = 0
    for comment in self.comments {
      if snapshot.key == comment.key {
        return index
      }
      index += 1
    }
    return -1
  }

  func insertRows(at paths: [[Int]]) { log("insert \(paths)") }
  func deleteRows(at paths: [[Int]]) { log("delete \(paths)") }

  init(database: Database) {
    ref = database.reference()
    commentsRef = ref.child("post-comments").child("post-1")
  }

  func append(text: String) -> String? {
    let newRef = commentsRef.childByAutoId()
    newRef.setValue(["uid": getUid(), "text": text])
    return newRef.key
  }

  func listen() {
    // Listen for new comments in the Firebase database
    commentsRef.observe(
      .childAdded,
      with: { (snapshot) -> Void in
        self.comments.append(snapshot)
        self.insertRows(at: [[self.kSectionComments, self.comments.count - 1]])
      })
    // Listen for deleted comments in the Firebase database
    commentsRef.observe(
      .childRemoved,
      with: { (snapshot) -> Void in
        let index = self.indexOfMessage(snapshot)
        self.comments.remove(at: index)
        self.deleteRows(at: [[self.kSectionComments, index]])
      })
    // The guide lists these events in a table, but has no code for them.
    commentsRef.observe(.childChanged, with: { (snapshot) -> Void in print("changed", snapshot.key) })
    commentsRef.observe(.childMoved, with: { (snapshot) -> Void in print("moved", snapshot.key) })
  }

  func listenForValue(_ seen: @escaping ([String]) -> Void) {
    commentsRef.observe(.value) { snapshot in
      var keys: [String] = []
      for child in snapshot.children {
        keys.append((child as! DataSnapshot).key)
      }
      seen(keys)
    }
  }

  func queries() -> [DatabaseQuery] {
    // My top posts by number of stars
    let myTopPostsQuery = ref.child("user-posts").child(getUid()).queryOrdered(byChild: "starCount")
    let postsByMostPopular = ref.child("posts").queryOrdered(byChild: "metrics/views")
    // Last 100 posts, these are automatically the 100 most recent
    // due to sorting by push() keys
    let recentPostsQuery = (ref?.child("posts").queryLimited(toFirst: 100))!
    return [myTopPostsQuery, postsByMostPopular, recentPostsQuery]
  }

  // The guide lists these methods in tables, but has no code for them.
  func namedInTables() -> [DatabaseQuery] {
    let posts = ref.child("posts")
    return [
      posts.queryOrderedByKey(),
      posts.queryOrderedByValue(),
      posts.queryOrdered(byChild: "starCount").queryLimited(toLast: 10),
      posts.queryOrdered(byChild: "starCount").queryStarting(atValue: 1).queryEnding(atValue: 10),
      posts.queryOrdered(byChild: "starCount").queryStarting(afterValue: 1),
      posts.queryOrdered(byChild: "starCount").queryEnding(beforeValue: 10),
      posts.queryOrdered(byChild: "author").queryEqual(toValue: "Doug"),
    ]
  }

  func stop(handle: DatabaseHandle) {
    commentsRef.removeObserver(withHandle: handle)
    commentsRef.removeAllObservers()
  }
}
