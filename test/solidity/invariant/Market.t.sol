// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Actions} from "../support/Actions.sol";
import {IMintableToken} from "../support/Interfaces.sol";

/// @notice What holds after any sequence of actions by takers, posters, makers and the owner.
contract MarketInvariants is Actions {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(this);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        targets = new FuzzSelector[](1);
        bytes4[] memory s = new bytes4[](18);
        // Swaps and posts are what there is most of.
        (s[0], s[1], s[2]) = (this.swap.selector, this.swap.selector, this.swap.selector);
        (s[3], s[4], s[5]) = (this.swapAll.selector, this.split.selector, this.roundTrip.selector);
        (s[6], s[7], s[8]) = (this.post.selector, this.postPartial.selector, this.touch.selector);
        (s[9], s[10], s[11]) = (this.reorganise.selector, this.deposit.selector, this.settle.selector);
        (s[12], s[13], s[14]) = (this.settleTooMuch.selector, this.execute.selector, this.setFee.selector);
        (s[15], s[16], s[17]) = (this.setDelay.selector, this.wait.selector, this.post.selector);
        targets[0] = FuzzSelector(address(this), s);
    }

    /// @dev One function, since each would be given a campaign of its own.
    function invariant_Market() external {
        _depthIsSoldOnce();
        _expiredAndUnknownMarketsQuoteNothing();
        _claimsAreCovered();
        _theVaultBalances();
    }

    /// @dev Whatever was posted and taken in between: left is what was posted last, less what was taken since its snapshot, up to
    /// the end of a segment at the time it landed.
    function _depthIsSoldOnce() private {
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.cumAsk, taken[0], "cumAsk");
        assertEq(s.cumBid, taken[1], "cumBid");
        assertEq(s.fillSeq, fills, "fillSeq");
        if (_expired()) return;
        assertEq(_depth(true), _left(0), "asks");
        assertEq(_depth(false), _left(1), "bids");
    }

    function _expiredAndUnknownMarketsQuoteNothing() private {
        assertEq(entrypoint.quote(address(base), TAKER, 1e18), 0, "unknown");
        if (!_expired()) return;
        bytes memory expired = abi.encodeWithSelector(
            ICurveBook.CurveExpired.selector,
            market,
            book.marketState(market).deadline
        );
        for (uint256 mode = 0; mode < 4; ++mode) {
            (address tokenIn, address tokenOut) = _pair(mode < 2);
            (uint256 amountIn, uint256 amountOut) = book.preview(tokenIn, tokenOut, 1e6, mode % 2 == 0);
            assertEq(amountIn + amountOut, 0, "expired");
            vm.prank(address(entrypoint));
            vm.expectRevert(expired);
            book.consume(ICurveBook.Request(1e6, tokenIn, mode % 2 == 0, tokenOut));
        }
    }

    function _claimsAreCovered() private view {
        for (uint256 i = 0; i < 2; ++i) {
            IMintableToken token = i == 0 ? base : quote;
            uint256 total = custodian.totalClaims(address(token));
            (uint256 first, ) = custodian.claim(makers[0], address(token));
            (uint256 second, ) = custodian.claim(makers[1], address(token));
            assertEq(total, first + second, "sum of claims");
            assertEq(total, claimed[i], "as settled");
            assertLe(total, token.balanceOf(address(custodian)), "covered");
        }
    }

    /// @dev The vault has what came in less what went out, to the unit, and nobody else keeps anything.
    function _theVaultBalances() private view {
        for (uint256 i = 0; i < 2; ++i) {
            IMintableToken token = i == 0 ? base : quote;
            assertEq(token.balanceOf(address(custodian)), held[i], "vault");
            assertEq(custodian.availableLiquidity(address(token)), held[i] - claimed[i], "free liquidity");
            uint256 stray = token.balanceOf(address(entrypoint)) + token.balanceOf(address(book));
            assertEq(stray + token.balanceOf(address(settler)), 0, "nothing between");
        }
    }
}
