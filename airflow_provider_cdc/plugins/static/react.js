// SPDX-License-Identifier: Apache-2.0
// React and the router are the UI's own: nothing is loaded twice, and nothing from elsewhere.

export const { createElement: h, Fragment, useCallback, useEffect, useState } = globalThis.React;
export const { Link, useSearchParams } = globalThis.ReactRouterDOM;
