#!/usr/bin/env bash
# The acceptance tests on GitLab in a container: `up` starts it and waits until it is healthy, `test` runs the tests on it,
# `down` removes it with all its data. Arguments of `test` go to pytest.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
compose=(docker compose --file "$here/compose.yaml")

make_token() {
  "${compose[@]}" exec -T gitlab gitlab-rails runner "
    token = User.find_by_username('root').personal_access_tokens.create!(
      name: 'acceptance', scopes: %w[api admin_mode], expires_at: 1.day.from_now)
    print token.token"
}

case ${1:-} in
  up)
    "${compose[@]}" up --detach --wait
    ;;
  test)
    RECONCILER_ACCEPTANCE_URL=http://127.0.0.1:${RECONCILER_ACCEPTANCE_PORT:-8929}/api/v4
    echo "acceptance: GitLab makes a token for an administrator, which takes some 20 seconds" >&2
    RECONCILER_ACCEPTANCE_TOKEN=$(make_token)
    export RECONCILER_ACCEPTANCE_URL RECONCILER_ACCEPTANCE_TOKEN
    cd "$here/../.."
    exec "${PYTHON:-python}" -m pytest tests/acceptance -o faulthandler_timeout=0 "${@:2}"
    ;;
  down)
    "${compose[@]}" down --volumes
    ;;
  *)
    echo "usage: $0 up | test [PYTEST ARGUMENT]... | down" >&2
    exit 64
    ;;
esac
