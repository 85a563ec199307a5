// Connects the token sources of the app to the connection.

import Dispatch
import FirebaseCore
import Locking

/// The sources of the tokens that a connection sends.
struct TokenSources: Sendable {
  /// The ID tokens of FirebaseAuth.
  let auth: TokenSource
  /// The tokens of App Check.
  let appCheck: TokenSource
}

extension Repository {
  /// Sends every later change of a token. The first tokens are fetched before the client connects.
  func observeTokens() {
    guard let tokenSources else { return }
    tokenObservations = [
      observe(tokenSources.auth) { $0.authChanged($1) },
      observe(tokenSources.appCheck) { $0.appCheckChanged($1) },
    ]
  }

  private func observe(
    _ source: TokenSource, _ change: @escaping @Sendable (inout ServerConnection, String?) -> Void
  ) -> TokenObservation {
    let isFirst = Guarded(true)
    return source.observe { [weak self] state in
      // The first reported state may be older than the token that is fetched for the connection.
      let isInitial = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isInitial { return }
      self?.step { change(&$0.connection, state.token) }
    }
  }

  func fetchTokens(_ generation: Int, forcingAuth: Bool, forcingAppCheck: Bool) {
    guard let tokenSources else {
      return connection.tokensFetched(generation, auth: .success(nil), appCheck: nil, at: Repository.uptime)
    }
    let user = tokenSources.auth.userID
    tokenSources.auth.token(forcingRefresh: forcingAuth) { [weak self] auth in
      tokenSources.appCheck.token(forcingRefresh: forcingAppCheck) { [weak self] appCheck in
        self?.step { repository in
          // Another user has signed in during the request. The writes of that user must not be sent with this
          // token.
          guard tokenSources.auth.userID == user else {
            return repository.fetchTokens(generation, forcingAuth: false, forcingAppCheck: false)
          }
          // If no App Check token is available, the client connects without one, and the server decides
          // whether to accept it.
          let appCheck = (try? appCheck.get()) ?? nil
          repository.connection.tokensFetched(
            generation, auth: auth, appCheck: appCheck, at: Repository.uptime)
        }
      }
    }
  }

  func refreshAppCheck() {
    tokenSources?.appCheck.token(forcingRefresh: true) { [weak self] result in
      guard let token = try? result.get() else { return }
      self?.step { $0.connection.appCheckChanged(token) }
    }
  }

  /// Runs a step of the core that the app did not request.
  private func step(_ work: @escaping @Sendable (Repository) -> Void) {
    Repository.queue.async { [weak self] in
      guard let self else { return }
      work(self)
      self.flush()
    }
  }
}
